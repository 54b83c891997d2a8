//! What a terminal shows while something is going on, and what a person presses meanwhile.
//!
//! * [`mod@line`] – words with a style, and how they are wrapped.
//! * [`markdown`], [`table`] – Markdown as lines; [`stream`] – the same for text that is still coming.
//! * [`region`] – the last lines on the screen, which may still change; above them nothing does.
//! * [`out`] – bytes on their way out, so that a terminal that does not take them holds up nobody.
//! * [`keyboard`] – single keys, and the terminal as it was when we leave.
//!
//! Nothing here knows of agents. Text of others has passed [`crate::plain`] before it comes here.

pub(crate) mod keyboard;
pub(crate) mod line;
pub(crate) mod markdown;
pub(crate) mod out;
pub(crate) mod region;
pub(crate) mod stream;
mod table;
