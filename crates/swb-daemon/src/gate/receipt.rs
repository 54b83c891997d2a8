//! What is owed to the record: an end for every start, before anybody is told.

use futures_util::FutureExt;
use swb_bus::gate::{Closing, Receipt};
use swb_proto::{BusError, BusResult};

use crate::record::{Recorded, Started, presentable};

/// A command whose start is recorded.
pub(super) struct Owed(pub(super) Started);

impl Receipt for Owed {
    fn close(self: Box<Self>, result: BusResult) -> Closing {
        // Whoever is outside is told neither secrets nor where things lie; neither is the record.
        let result = result.map_err(presentable);
        match self.0.ended(&result) {
            Recorded::Ready(Ok(_)) => Closing::Now(result),
            Recorded::Ready(Err(error)) => Closing::Now(Err(BusError::from(error))),
            Recorded::Later(recorded) => Closing::Later(
                async move {
                    recorded.await?;
                    result
                }
                .boxed(),
            ),
        }
    }
}
