//! What a provider says it offers.

use std::time::Duration;

use reqwest::{Client, StatusCode};
use serde_json::Value;

use crate::model::provider::{Dialect, Provider};

/// A list longer than this is no list of models.
const MAX_BYTES: usize = 8 * 1024 * 1024;
const ANTHROPIC_VERSION: &str = "2023-06-01";
/// Models with such names make something other than words.
const NOT_FOR_WORDS: &[&str] = &[
    "embed",
    "whisper",
    "tts",
    "moderation",
    "rerank",
    "dall-e",
    "transcribe",
    "realtime",
    "-image",
    "sora",
    "imagen",
    "veo-",
];
/// Where providers say how much fits into a model.
const CONTEXT_KEYS: &[&str] = &[
    "/context_length",
    "/context_window",
    "/max_model_len",
    "/max_context_length",
    "/max_input_tokens",
    "/inputTokenLimit",
    "/meta/n_ctx",
    "/meta/n_ctx_train",
];

/// A model that a provider offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    pub(crate) context_window: Option<u64>,
}

/// Why there is no list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotListed {
    /// The provider does not want us.
    Refused,
    /// It did not answer, or not with a list.
    Silent,
}

/// Asks the provider, but not for longer than this.
pub(crate) async fn models(
    provider: &Provider,
    client: &Client,
    limit: Duration,
) -> Result<Vec<Listed>, NotListed> {
    let answer = tokio::time::timeout(limit, ask(provider, client)).await;
    answer.unwrap_or(Err(NotListed::Silent))
}

async fn ask(provider: &Provider, client: &Client) -> Result<Vec<Listed>, NotListed> {
    let path = match provider.dialect {
        Dialect::Anthropic => "models?limit=1000",
        Dialect::Gemini => "models?pageSize=1000",
        Dialect::OpenAi => "models",
    };
    let mut request = client.get(format!("{}{path}", provider.base_url));
    if let Some(key) = provider.key().map(|key| key.expose()) {
        request = match provider.dialect {
            Dialect::Anthropic => request.header("x-api-key", key),
            Dialect::Gemini => request.header("x-goog-api-key", key),
            Dialect::OpenAi => request.bearer_auth(key),
        };
    }
    if provider.dialect == Dialect::Anthropic {
        request = request.header("anthropic-version", ANTHROPIC_VERSION);
    }
    let mut response = request.send().await.map_err(|_| NotListed::Silent)?;
    match response.status() {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Err(NotListed::Refused),
        status if !status.is_success() => return Err(NotListed::Silent),
        _ => {}
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|_| NotListed::Silent)? {
        if body.len() + chunk.len() > MAX_BYTES {
            return Err(NotListed::Silent);
        }
        body.extend_from_slice(&chunk);
    }
    read(&serde_json::from_slice(&body).map_err(|_| NotListed::Silent)?).ok_or(NotListed::Silent)
}

/// Reads any of the three forms.
fn read(list: &Value) -> Option<Vec<Listed>> {
    let models = list.get("data").or_else(|| list.get("models")).unwrap_or(list).as_array()?;
    Some(models.iter().filter_map(read_model).collect())
}

fn read_model(model: &Value) -> Option<Listed> {
    let text = |key: &str| model.get(key).and_then(Value::as_str).map(str::to_owned);
    // Google calls it a resource, and lists also what cannot be talked to.
    let id = text("id").or_else(|| text("name"))?;
    let id = id.strip_prefix("models/").unwrap_or(&id).to_owned();
    let methods = model.get("supportedGenerationMethods").and_then(Value::as_array);
    let talks = methods.is_none_or(|methods| methods.iter().any(|method| method == "generateContent"));
    if !talks || NOT_FOR_WORDS.iter().any(|word| id.to_lowercase().contains(word)) {
        return None;
    }
    let name = text("display_name").or_else(|| text("displayName"));
    let context_window = CONTEXT_KEYS.iter().find_map(|key| model.pointer(key).and_then(Value::as_u64));
    Some(Listed { id, name, context_window })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn one(list: Value) -> Listed {
        let mut models = read(&list).unwrap();
        assert_eq!(models.len(), 1, "{models:?}");
        models.remove(0)
    }

    #[test]
    fn the_lists_of_all_kinds_of_providers_are_read() {
        let anthropic = one(json!({ "data": [{ "id": "claude-x", "display_name": "Claude X" }] }));
        assert_eq!(anthropic.name.as_deref(), Some("Claude X"));
        let gemini = one(json!({ "models": [
            { "name": "models/gemini-x", "displayName": "G", "inputTokenLimit": 5, "supportedGenerationMethods": ["generateContent"] },
            { "name": "models/aqa", "supportedGenerationMethods": ["generateAnswer"] },
        ]}));
        assert_eq!((gemini.id.as_str(), gemini.context_window), ("gemini-x", Some(5)));
        let llama = one(json!({ "data": [{ "id": "smollm2", "meta": { "n_ctx_train": 8192 } }] }));
        assert_eq!(llama.context_window, Some(8192));
        let vllm =
            one(json!({ "data": [{ "id": "q", "max_model_len": 32768 }, { "id": "text-embedding-3" }] }));
        assert_eq!(vllm.context_window, Some(32768));
    }

    #[test]
    fn what_is_no_list_is_none() {
        for other in [json!({ "error": "x" }), json!("x"), json!({ "data": 3 })] {
            assert_eq!(read(&other), None);
        }
        assert_eq!(read(&json!([{ "no id": 1 }, 3])), Some(vec![]));
    }
}
