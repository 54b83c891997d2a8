//! `swb complete`: asks the model one question for the daemon, which neither calls models nor knows how.

use swb_agent::completion::{CompletionOptions, complete};
use swb_agent::model::Thinking;
use swb_daemon::{Paths, redaction};

use super::{models, rpc};
use crate::exit_code;
use crate::failure::Failure;
use crate::incumbent;

pub(crate) fn run(set: &[String]) -> Result<u8, Failure> {
    let paths = Paths::from_env()?;
    // Before anything is redacted.
    redaction::start(&paths.redaction_file())
        .map_err(|error| Failure::new(error.to_string()).code(exit_code::CONFIG))?;
    let config = crate::io::layers(&paths, set)?.finish()?;
    let options = CompletionOptions {
        model: rpc::usual_model(&config.agent.model),
        thinking: Thinking::from_name(&config.agent.thinking).unwrap_or_default(),
        models: models::settings(&config, incumbent::Settings::read(None).keys),
    };
    complete(options).map_err(|error| Failure::new("the model was not asked").because(error))?;
    Ok(exit_code::SUCCESS)
}
