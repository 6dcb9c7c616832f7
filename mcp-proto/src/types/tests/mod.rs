mod calls;
mod discovery;
mod input;
mod lists;
mod others;
mod responses;

use super::object::each_member;
use super::*;
use crate::wire::Json;

/// Reads a result from its text.
pub(crate) fn reading<R>(text: &str, read: impl FnOnce(&Members<'_>) -> R) -> R {
    let json = Json::parse(text).unwrap();
    let mut members = Members::default();
    each_member(json.as_raw(), |name, raw| {
        assert!(members.insert(name, raw));
        Ok::<_, ()>(())
    })
    .unwrap()
    .unwrap();
    read(&members)
}

fn fault(violation: Violation, detail: &str) -> Fault {
    Fault::new(violation, detail)
}

/// R17: the four shapes of `resultType` in both eras.
#[test]
fn result_type_by_era() {
    use Violation::{InputRequiredInvalid, ResultTypeMissing, ResultTypeUnknown};
    let kind = |text, era| {
        reading(text, |members| {
            result_type(members, era).map_err(|fault| fault.violation)
        })
    };
    for (text, modern, legacy) in [
        ("{}", Err(ResultTypeMissing), Ok(ResultType::Complete)),
        (
            r#"{"resultType":null}"#,
            Err(ResultTypeMissing),
            Ok(ResultType::Complete),
        ),
        (
            r#"{"resultType":"complete"}"#,
            Ok(ResultType::Complete),
            Ok(ResultType::Complete),
        ),
        (
            r#"{"resultType":"input_required"}"#,
            Ok(ResultType::InputRequired),
            Err(InputRequiredInvalid),
        ),
        (
            r#"{"resultType":"Complete"}"#,
            Err(ResultTypeUnknown),
            Err(ResultTypeUnknown),
        ),
        (
            r#"{"resultType":1}"#,
            Err(ResultTypeUnknown),
            Err(ResultTypeUnknown),
        ),
    ] {
        assert_eq!(kind(text, Era::Modern), modern, "{text}");
        assert_eq!(kind(text, Era::Legacy), legacy, "{text}");
    }
    let unknown = reading(r#"{"resultType":"ta\u001bsk"}"#, |members| {
        result_type(members, Era::Modern).unwrap_err().detail
    });
    assert_eq!(unknown, r#"resultType is "ta\u{1b}sk""#);
}
