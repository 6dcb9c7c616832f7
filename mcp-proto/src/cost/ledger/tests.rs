use alloc::format;
use alloc::vec;

use proptest::prelude::*;

use super::super::amount::CostReading;
use super::super::budget::BudgetExceeded;
use super::*;
use crate::error::{Error, ErrorKind};

fn usd(text: &str) -> NanoUsd {
    let CostReading { amount, warning } = NanoUsd::read(text);
    assert_eq!(warning, None, "{text}");
    amount
}

fn spend<'a>(task: &'a str, tool: &'a str, cost: &str) -> Spend<'a> {
    Spend {
        task,
        server: "git",
        tool,
        cost: cost.into(),
        call: Some(7),
        time_unix_ms: None,
    }
}

fn with_budget(scope: BudgetScope, limit: &str) -> SpendLedger {
    SpendLedger::new(LedgerSettings {
        budgets: vec![Budget::new(scope, usd(limit))],
        ..LedgerSettings::default()
    })
}

/// R50: totals by task, server, tool, model label and tag, over what stood in the file and what came.
#[test]
fn r50_totals_by_every_dimension() {
    let mut ledger = SpendLedger::new(LedgerSettings::default());
    ledger.read(br#"{"model":"large","tag":"llm","task":"t","usd":"1.5","unknown":[1]}"#);
    ledger.read(b"\n");
    ledger.finish_reading();
    ledger.record(&spend("t", "diff", "0.25"));
    ledger.record(&spend("u", "diff", "0"));
    ledger.record(&spend("u", "log", "0.125"));
    let total = |dimension, name| {
        let tally = ledger.total(dimension, name);
        (tally.calls, alloc::string::ToString::to_string(&tally.cost))
    };
    assert_eq!(total(Dimension::Task, "t"), (2, "1.75".into()));
    assert_eq!(total(Dimension::Task, "u"), (2, "0.125".into()));
    assert_eq!(total(Dimension::Server, "git"), (3, "0.375".into()));
    assert_eq!(total(Dimension::Tool, "git/diff"), (2, "0.25".into()));
    assert_eq!(total(Dimension::Model, MODEL_LABEL), (3, "0.375".into()));
    assert_eq!(total(Dimension::Model, "large"), (1, "1.5".into()));
    assert_eq!(total(Dimension::Tag, TAG), (3, "0.375".into()));
    assert_eq!(total(Dimension::Tag, "mcp-server"), (0, "0".into()));
    let tools: Vec<_> = ledger
        .totals(Dimension::Tool)
        .map(|(name, _)| name)
        .collect();
    assert_eq!(tools, ["git/diff", "git/log"]);
    assert_eq!(ledger.sum().cost, usd("1.875"));
}

/// R50: the exact bytes of a line; members sorted, names escaped.
#[test]
fn r50_a_line() {
    let settings = LedgerSettings {
        sync: true,
        ..LedgerSettings::default()
    };
    let mut ledger = SpendLedger::new(settings);
    let (line, warning) = ledger.record(&Spend {
        task: "a\"\n",
        time_unix_ms: Some(1_800_000_000_000),
        ..spend("", "größe", "1e-9")
    });
    let text = r#"{"call":7,"model":"mcp-server","server":"git","tag":"mcp_server","task":"a\"\n","timeUnixMs":1800000000000,"tool":"größe","usd":0.000000001}"#;
    assert_eq!(line.bytes, format!("{text}\n").as_bytes());
    assert_eq!((line.sync, warning), (true, None));
    let (_, warning) = ledger.record(&spend("t", "x", "-1"));
    assert_eq!(warning, Some(CostWarning::Negative));
    assert_eq!(ledger.sum().calls, 2);
}

/// R50: damaged lines are skipped and counted, one that was torn off is tolerated, and the next line is
/// not glued to it.
#[test]
fn r50_damaged_lines_are_skipped() {
    let mut ledger = SpendLedger::new(LedgerSettings::default());
    let mut file = b"{\"usd\":1}\n[]\n\xff\xfe\n{\"usd\":-1}\n{\"usd\":null}\n{}\n\n \r\n{\"usd\":2,\"task\":3}\n\
        {\"usd\":1,\"usd\":1}\n{\"usd\":\"0.5\"}\r\n{\"usd\":0.30000000000000004}\n"
        .to_vec();
    file.extend(vec![b'x'; LINE_BYTES + 1]);
    file.extend_from_slice(b"\n{\"usd\":4}\n{\"usd\":8");
    for chunk in file.chunks(1000) {
        ledger.read(chunk);
    }
    ledger.finish_reading();
    assert_eq!(ledger.sum().cost, usd("5.8"));
    let expected = LedgerHealth {
        lines_read: 4,
        damaged_lines: 8,
        torn_end: true,
        ..LedgerHealth::default()
    };
    assert_eq!(*ledger.health(), expected);
    let line = |ledger: &mut SpendLedger| ledger.record(&spend("t", "x", "1")).0.bytes;
    assert!(line(&mut ledger).starts_with(b"\n{"));
    assert!(line(&mut ledger).starts_with(b"{"));
}

/// R50: a ledger failure is counted and swallowed; the sums stay.
#[test]
fn r50_a_failed_append_loses_nothing_here() {
    let mut ledger = SpendLedger::new(LedgerSettings::default());
    ledger.record(&spend("t", "x", "1"));
    ledger.append_failed("no space left on device\u{1b}[2J");
    assert_eq!(ledger.sum().cost, usd("1"));
    assert_eq!(ledger.health().append_failures, 1);
    let reason = ledger.health().last_failure.as_deref();
    assert_eq!(reason, Some("no space left on device\\u{1b}[2J"));
    // Part of the line may have been written.
    assert!(
        ledger
            .record(&spend("t", "x", "1"))
            .0
            .bytes
            .starts_with(b"\n")
    );
}

/// R50: a soft warning at 80 %, a hard stop at the end, typed.
#[test]
fn r50_budgets_warn_and_then_stop() {
    let mut ledger = with_budget(BudgetScope::Task, "1");
    assert_eq!(ledger.check("t", None), Verdict::Ok);
    ledger.record(&spend("t", "x", "0.799999999"));
    assert_eq!(ledger.check("t", None), Verdict::Ok);
    ledger.record(&spend("t", "x", "0.000000001"));
    let warning = Verdict::SoftWarning {
        scope: BudgetScope::Task,
        spent: usd("0.8"),
        limit: usd("1"),
    };
    assert_eq!(ledger.check("t", None), warning);
    assert_eq!(ledger.check("t", Some(usd("0.2"))), warning);
    let exceeded = BudgetExceeded {
        task: Some("t".into()),
        spent: usd("0.8"),
        limit: usd("1"),
    };
    let stop = Verdict::HardStop(exceeded.clone());
    assert_eq!(ledger.check("t", Some(usd("0.200000001"))), stop);
    assert_eq!(ledger.check("other", None), Verdict::Ok);
    ledger.record(&spend("t", "x", "0.2"));
    assert!(matches!(ledger.check("t", None), Verdict::HardStop(_)));
    assert!(matches!(
        ledger.check("t", Some(NanoUsd::ZERO)),
        Verdict::SoftWarning { .. }
    ));
    let error = Error::from(exceeded);
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert!(!error.may_have_executed());
    insta::assert_snapshot!(format!("{error}\n{}", error.remedy()), @r#"
    a call beyond the budget (task "t" has spent 0.8 of 1 USD; counted in billionths of a dollar) exceeds the limit of 1000000000
    Raise "budgetUsd" above 0.8, or start a new ledger.
    "#);
}

/// The budget of the ledger counts what stood in the file; the graver verdict counts.
#[test]
fn r50_the_ledgers_budget_counts_the_file() {
    let mut ledger = with_budget(BudgetScope::Ledger, "2");
    ledger
        .settings
        .budgets
        .push(Budget::new(BudgetScope::Task, usd("0")));
    ledger.read(b"{\"usd\":1.9}\n");
    ledger.finish_reading();
    let verdict = |ledger: &SpendLedger| match ledger.check("t", Some(NanoUsd::ZERO)) {
        Verdict::SoftWarning { scope, .. } => Some(scope),
        _ => None,
    };
    assert_eq!(verdict(&ledger), Some(BudgetScope::Ledger));
    let Verdict::HardStop(exceeded) = ledger.check("t", None) else {
        panic!("a budget of nothing allows a call of unknown cost");
    };
    assert_eq!(exceeded.task.as_deref(), Some("t"));
}

/// R1: names are bounded; a task without a place of its own is judged by all of those.
#[test]
fn r50_names_are_bounded() {
    let mut ledger = with_budget(BudgetScope::Task, "1");
    ledger.settings.max_names = 1;
    ledger.record(&spend("a", "x", "0.5"));
    let (_, warning) = ledger.record(&spend("b", "x", "0.6"));
    assert_eq!(warning, Some(CostWarning::TooManyNames));
    ledger.record(&spend("c", "x", "0.6"));
    assert_eq!(ledger.check("a", None), Verdict::Ok);
    assert!(matches!(ledger.check("b", None), Verdict::HardStop(_)));
    assert_eq!(ledger.sum().cost, usd("1.7"));
    let long = "ä".repeat(10_000);
    let (line, _) = ledger.record(&spend("a", &long, "0"));
    assert!(line.bytes.len() < 1000, "{}", line.bytes.len());
}

proptest! {
    /// What was written reads back as the same sums, wherever the file is cut into chunks, in whatever
    /// order the lines of several writers come.
    #[test]
    fn r50_lines_read_back(
        calls in proptest::collection::vec((".{0,8}", ".{0,8}", 0_u64..1 << 60), 0..20),
        cut in 1_usize..200,
        reverse: bool,
    ) {
        let mut written = SpendLedger::new(LedgerSettings::default());
        let mut lines: Vec<Vec<u8>> = calls
            .iter()
            .map(|(task, tool, nanos)| {
                let cost = NanoUsd::from_nanos(*nanos).into();
                let spend = Spend { cost, ..spend(task, tool, "0") };
                written.record(&spend).0.bytes
            })
            .collect();
        if reverse {
            lines.reverse();
        }
        let mut read = SpendLedger::new(LedgerSettings::default());
        for chunk in lines.concat().chunks(cut) {
            read.read(chunk);
        }
        read.finish_reading();
        prop_assert_eq!(read.health().lines_read, calls.len() as u64);
        prop_assert_eq!(read.health().damaged_lines, 0);
        prop_assert_eq!(read.sum(), written.sum());
        for dimension in [Dimension::Task, Dimension::Tool, Dimension::Server, Dimension::Model, Dimension::Tag] {
            let (one, other): (Vec<_>, Vec<_>) = (read.totals(dimension).collect(), written.totals(dimension).collect());
            prop_assert_eq!(one, other);
        }
    }

    #[test]
    fn r50_no_file_is_worse_than_damaged(bytes: Vec<u8>) {
        let mut ledger = SpendLedger::new(LedgerSettings::default());
        ledger.read(&bytes);
        ledger.finish_reading();
        prop_assert_eq!(ledger.sum(), Tally::default());
    }
}
