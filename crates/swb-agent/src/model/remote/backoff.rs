//! How long to wait before the next attempt, and when to give up.

use std::time::Duration;

use super::failure::Failure;
use crate::model::ModelError;
use crate::model::settings::Limits;

/// What follows a failed attempt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Wait(Duration),
    GiveUp(ModelError),
}

/// Decides. `failed` attempts were made, this one included; `luck` is anything from 0 to 1.
pub(super) fn next(limits: &Limits, failed: u32, failure: Failure, luck: f64) -> Next {
    let Failure { error, passing, wait } = failure;
    if !passing {
        return Next::GiveUp(error);
    }
    if failed > limits.retries {
        let attempts = failed;
        return Next::GiveUp(if attempts > 1 { error.after(attempts) } else { error });
    }
    match wait {
        Some(wait) if wait > limits.retry_wait_max => {
            Next::GiveUp(ModelError::LongWait { seconds: wait.as_secs(), last: Box::new(error) })
        }
        Some(wait) => Next::Wait(wait),
        None => {
            let doubled = limits.retry_wait.saturating_mul(2_u32.saturating_pow(failed.saturating_sub(1)));
            // Agents that failed together shall not come back together.
            Next::Wait(doubled.min(limits.retry_wait_max).mul_f64(0.8 + 0.4 * luck.clamp(0.0, 1.0)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error() -> ModelError {
        ModelError::Refused { provider: "p".into(), status: 503, message: "busy".into() }
    }

    fn passing(wait: Option<Duration>) -> Failure {
        Failure { error: error(), passing: true, wait }
    }

    fn seconds(seconds: f64) -> Next {
        Next::Wait(Duration::from_secs_f64(seconds))
    }

    #[test]
    fn waits_grow_and_end() {
        let limits = Limits { retries: 7, ..Limits::default() };
        let waits: Vec<_> = (1..=7).map(|failed| next(&limits, failed, passing(None), 0.5)).collect();
        assert_eq!(waits, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0].map(seconds));
        assert_eq!(next(&limits, 8, passing(None), 0.5), Next::GiveUp(error().after(8)));
        assert_eq!(next(&limits, 1, passing(None), 0.0), seconds(0.8));
    }

    #[test]
    fn the_provider_says_how_long_within_reason() {
        let limits = Limits::default();
        assert_eq!(next(&limits, 1, passing(Some(Duration::from_secs(9))), 0.0), seconds(9.0));
        let long = next(&limits, 1, passing(Some(Duration::from_secs(3600))), 0.0);
        let Next::GiveUp(error) = long else { panic!("{long:?}") };
        assert!(error.to_string().contains("3600"), "{error}");
    }

    #[test]
    fn what_lasts_is_not_tried_again() {
        let limits = Limits { retries: 0, ..Limits::default() };
        assert_eq!(next(&limits, 1, Failure::lasting(error()), 0.0), Next::GiveUp(error()));
        assert_eq!(
            next(&limits, 1, passing(None), 0.0),
            Next::GiveUp(error()),
            "no retries, no talk of them"
        );
    }
}
