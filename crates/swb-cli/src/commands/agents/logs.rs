//! `swb logs`: what a session has done, from its first run on.

use swb_proto::Meta;
use swb_proto::run::Run;

use super::{LogsArgs, meant, runs};
use crate::commands::run::daemon::story;
use crate::connect::connect;
use crate::failure::Failure;
use crate::io::Io;

pub(crate) async fn run(args: &LogsArgs, io: &Io) -> Result<u8, Failure> {
    let handle = connect(Meta::default()).await?;
    let all = runs(&handle).await?;
    let session = meant(&all, args.session.as_deref())?.session_id;
    let of_session: Vec<Run> = all.into_iter().filter(|run| run.session_id == session).collect();
    story::show(&handle, session, &of_session, args.follow, io).await
}
