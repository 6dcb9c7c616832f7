//! Views over one JSON-RPC message, and the envelopes the server writes.

use serde_json::{Map, Value, json};

/// What a client message is, by the members that are present.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind<'a> {
    Request { id: &'a Value, method: &'a str },
    Notification,
    Response { id: &'a Value },
    Malformed,
}

impl<'a> Kind<'a> {
    pub(crate) fn of(message: &'a Value) -> Self {
        if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Self::Malformed;
        }
        match (message.get("id"), method(message)) {
            (Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)), _) => {
                Self::Malformed
            }
            (Some(id), Some(method)) => Self::Request { id, method },
            (None, Some(_)) => Self::Notification,
            (Some(id), None) if message.get("method").is_none() => Self::Response { id },
            _ => Self::Malformed,
        }
    }
}

pub(crate) fn method(message: &Value) -> Option<&str> {
    message.get("method").and_then(Value::as_str)
}

pub(crate) fn params(message: &Value) -> &Value {
    message.get("params").unwrap_or(&Value::Null)
}

/// The member of `params._meta` with this key.
pub(crate) fn meta<'a>(params: &'a Value, key: &str) -> Option<&'a Value> {
    params.get("_meta").and_then(|meta| meta.get(key))
}

pub(crate) fn progress_token(params: &Value) -> Option<&Value> {
    meta(params, "progressToken").filter(|token| !token.is_null())
}

/// A JSON-RPC error object.
#[derive(Clone, Debug)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

impl RpcError {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(-32602, message)
    }

    pub(crate) fn method_not_found(method: &str) -> Self {
        Self::new(-32601, format!("Method not found: {method}"))
    }

    pub(crate) fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }
}

pub(crate) fn result(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// An error response; without an id the member is left out, as the newer schemas want it.
pub(crate) fn error(id: Option<&Value>, error: RpcError) -> Value {
    let mut object = Map::new();
    object.insert("code".into(), error.code.into());
    object.insert("message".into(), error.message.into());
    if let Some(data) = error.data {
        object.insert("data".into(), data);
    }
    let mut response = Map::new();
    response.insert("jsonrpc".into(), "2.0".into());
    if let Some(id) = id {
        response.insert("id".into(), id.clone());
    }
    response.insert("error".into(), object.into());
    response.into()
}

pub(crate) fn notification(method: &str, params: Value) -> Value {
    if params.is_null() {
        return json!({"jsonrpc": "2.0", "method": method});
    }
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

pub(crate) fn request(id: &Value, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}
