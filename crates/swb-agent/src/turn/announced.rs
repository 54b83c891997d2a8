//! A model whose waits the parent gets to see, whoever calls it.

use std::sync::Arc;

use futures_util::StreamExt;

use crate::model::{Delta, Deltas, Inputs, Model, Prompt};
use crate::stdio::output::Output;

/// The same model, with its retries announced.
pub(crate) fn announced(model: Arc<dyn Model>, output: Output) -> Arc<dyn Model> {
    Arc::new(Announced { model, output })
}

#[derive(Debug)]
struct Announced {
    model: Arc<dyn Model>,
    output: Output,
}

impl Model for Announced {
    fn answer(&self, prompt: Prompt) -> Deltas {
        let output = self.output.clone();
        let announce = move |delta| {
            let output = output.clone();
            async move {
                if let Ok(Delta::Retry(retry)) = &delta {
                    // A parent that has gone is noticed by the loop.
                    let _ = output.send(&retry.event()).await;
                }
                delta
            }
        };
        self.model.answer(prompt).then(announce).boxed()
    }

    fn inputs(&self) -> Inputs {
        self.model.inputs()
    }
}
