//! `swb call`: any method of the control socket.

use std::io::Read;

use serde_json::value::RawValue;
use swb_proto::Meta;
use swb_proto::id::InvalidId;

use crate::args::CallArgs;
use crate::connect::connect;
use crate::exit_code;
use crate::failure::Failure;
use crate::io::Io;

pub(crate) async fn run(args: CallArgs, io: &Io) -> Result<u8, Failure> {
    let params = params(args.params.as_deref())?;
    let Some(method) = swb_proto::method::slashed(&args.method) else {
        return Err(usage(format!("{:?} is not a method name", args.method)).hint("for example bus.status"));
    };
    let context = Meta {
        workspace_id: id(args.workspace)?,
        session_id: id(args.session)?,
        correlation_id: id(args.correlation)?,
        timeout_ms: args.timeout.map(milliseconds).transpose()?,
        ..Meta::default()
    };
    let handle = connect(Meta::default()).await?.with(context);
    let result = handle.call_json(&method, &params).await??;
    io.object(&result)?;
    Ok(exit_code::SUCCESS)
}

fn params(text: Option<&str>) -> Result<Box<RawValue>, Failure> {
    let text = match text {
        None => "{}".to_owned(),
        Some("-") => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text)?;
            text
        }
        Some(text) => text.to_owned(),
    };
    let value = RawValue::from_string(text.trim().to_owned())
        .map_err(|error| usage("the parameters are not JSON").because(error))?;
    if value.get().starts_with('{') {
        Ok(value)
    } else {
        Err(usage("the parameters must be a JSON object")
            .hint("parameters are given by name: '{\"key\": \"value\"}'"))
    }
}

fn id<T: TryFrom<String, Error = InvalidId>>(text: Option<String>) -> Result<Option<T>, Failure> {
    text.map(T::try_from).transpose().map_err(|error| usage("an id is not well formed").because(error))
}

fn milliseconds(seconds: f64) -> Result<u64, Failure> {
    let duration = std::time::Duration::try_from_secs_f64(seconds);
    let duration = duration.map_err(|error| usage("the timeout makes no sense").because(error))?;
    u64::try_from(duration.as_millis()).map_err(|error| usage("the timeout makes no sense").because(error))
}

fn usage(message: impl Into<String>) -> Failure {
    Failure::new(message).code(exit_code::USAGE)
}
