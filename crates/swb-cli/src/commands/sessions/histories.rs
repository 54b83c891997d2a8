//! What agents have worked on: one file each, looked at without reading it whole.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use swb_agent::sessions::{Glance, Known, LastTurn, Listed, newest_first};
use swb_daemon::Paths;
use swb_proto::Timestamp;

use super::SessionsArgs;
use super::kept::{Kept, word};
use crate::failure::Failure;
use crate::io::{BAD, DIM, GOOD, Io, NAME, WARN};
use crate::plain;

/// How many are shown unless more are asked for.
const USUAL: usize = 30;

/// A session with what was seen of it.
struct Seen {
    listed: Listed,
    glance: Glance,
    below: Vec<Seen>,
}

/// Lists them with what the daemon says of each, and then what only the daemon knows of.
pub(super) fn list(args: &SessionsArgs, mut kept: Kept, io: &Io) -> Result<(), Failure> {
    let folder = Paths::from_env()?.sessions(args.profile.as_deref());
    let listed = newest_first(&folder)
        .map_err(|error| Failure::new(format!("cannot list {}", folder.display())).because(error))?;
    let here = args.here.then(|| std::env::current_dir().ok()).flatten();
    let limit = args.limit.unwrap_or(if args.all || io.json { usize::MAX } else { USUAL });
    // Looked at one by one, so that a short list of a long folder is quick.
    let mut wanted = listed.into_iter().filter_map(|listed| look(listed, args.all, here.as_deref()));
    let mut seen: Vec<Seen> = wanted.by_ref().take(if args.all { usize::MAX } else { limit }).collect();
    if args.all {
        seen = under_their_parents(seen);
        seen.truncate(limit);
    }
    for session in &seen {
        show(session, 0, &mut kept, io)?;
    }
    // Those of other folders and profiles are not asked for then.
    let others = if args.here || args.profile.is_some() { 0 } else { kept.show(io)? };
    if seen.is_empty() && others == 0 && !io.json {
        io.note(format!("{DIM}no sessions yet: `swb run` begins one{DIM:#}"));
    }
    if !io.json && wanted.next().is_some() {
        io.note(format!("{DIM}… and older ones: `swb sessions --all`{DIM:#}"));
    }
    Ok(())
}

fn look(listed: Listed, all: bool, here: Option<&Path>) -> Option<Seen> {
    let glance = listed.look();
    let wanted = match &glance.known {
        Ok(known) => (all || known.parent.is_none()) && here.is_none_or(|here| known.cwd == here),
        Err(_) => here.is_none(),
    };
    wanted.then(|| Seen { listed, glance, below: Vec::new() })
}

/// Those of subagents move below the session that started them, if that is there.
fn under_their_parents(seen: Vec<Seen>) -> Vec<Seen> {
    let at: HashMap<String, usize> =
        seen.iter().enumerate().map(|(at, seen)| (seen.listed.id.clone(), at)).collect();
    let parent = |seen: &Seen| {
        let parent = seen.glance.known.as_ref().ok()?.parent.as_ref()?;
        at.get(parent).copied()
    };
    let parents: Vec<Option<usize>> = seen.iter().map(parent).collect();
    // A chain that bites its own tail has no end to hang it from; its members stay where they are.
    let rooted = |mut at: usize| {
        (0..parents.len()).any(|_| match parents[at] {
            Some(parent) => {
                at = parent;
                false
            }
            None => true,
        })
    };
    let rooted: Vec<bool> = (0..parents.len()).map(rooted).collect();
    let mut slots: Vec<Option<Seen>> = seen.into_iter().map(Some).collect();
    let mut below: HashMap<usize, Vec<usize>> = HashMap::new();
    for (at, parent) in parents.iter().enumerate() {
        if let Some(parent) = parent.filter(|_| rooted[at]) {
            below.entry(parent).or_default().push(at);
        }
    }
    let tops = (0..slots.len()).filter(|at| parents[*at].is_none() || !rooted[*at]).collect::<Vec<_>>();
    tops.into_iter().filter_map(|top| take(top, &mut slots, &below)).collect()
}

fn take(at: usize, slots: &mut [Option<Seen>], below: &HashMap<usize, Vec<usize>>) -> Option<Seen> {
    let mut seen = slots[at].take()?;
    let inner = below.get(&at).map(Vec::as_slice).unwrap_or_default();
    seen.below = inner.iter().filter_map(|at| take(*at, slots, below)).collect();
    Some(seen)
}

fn show(seen: &Seen, depth: usize, kept: &mut Kept, io: &Io) -> Result<(), Failure> {
    let state = kept.take(&seen.listed.id);
    if io.json {
        let mut object = to_json(seen);
        if let Some(state) = state {
            object["state"] = word(state).into();
        }
        io.line(object)?;
    } else {
        io.line(to_line(seen, depth, columns()))?;
    }
    seen.below.iter().try_for_each(|below| show(below, depth + 1, kept, io))
}

fn to_json(seen: &Seen) -> Value {
    let Listed { id, updated_at, bytes, .. } = &seen.listed;
    let mut object = match &seen.glance.known {
        Ok(known) => serde_json::to_value(known).unwrap_or_default(),
        Err(reason) => json!({ "damaged": reason }),
    };
    object["id"] = id.as_str().into();
    object["updated_at"] = Timestamp::from_system_time(*updated_at).as_str().into();
    object["bytes"] = (*bytes).into();
    object["live"] = seen.glance.live.into();
    object
}

fn to_line(seen: &Seen, depth: usize, columns: usize) -> String {
    let Listed { id, updated_at, .. } = &seen.listed;
    let age = age(SystemTime::now().duration_since(*updated_at).unwrap_or_default());
    let indent = "  ".repeat(depth);
    let known = match &seen.glance.known {
        Ok(known) => known,
        Err(reason) => {
            let reason = plain::line(reason, columns.saturating_sub(50));
            return format!(
                "{indent}{BAD}✗{BAD:#} {NAME}{id}{NAME:#} {DIM}{age:>7}{DIM:#}  damaged: {reason}"
            );
        }
    };
    let Known { title, cwd, model, turns, last_turn, .. } = known;
    let (sign, style) = match (seen.glance.live, last_turn) {
        (true, _) => ("●", GOOD),
        (false, LastTurn::Failed) => ("✗", BAD),
        (false, LastTurn::Begun) => ("!", WARN),
        (false, _) => ("○", DIM),
    };
    let turns = match turns {
        Some(1) => "1 turn".to_owned(),
        Some(turns) => format!("{turns} turns"),
        None => "? turns".to_owned(),
    };
    let (model, cwd) = (plain::line(model, 24), plain::line(&tilde(cwd), 40));
    let front = format!("{indent}{style}{sign}{style:#} {NAME}{id}{NAME:#} {DIM}{age:>7} {turns:>9}{DIM:#}");
    let used = 2 * depth + 2 + id.len() + 1 + 7 + 1 + 9 + 2;
    let place = format!("{cwd} · {model}");
    let title =
        title.as_deref().map_or_else(|| "(nothing said yet)".to_owned(), |title| plain::line(title, 80));
    // The title is what people look for: it gets the room, and the rest what is left.
    let room = columns.saturating_sub(used);
    let title = plain::cut(&title, room.max(20));
    let left = room.saturating_sub(unicode_width::UnicodeWidthStr::width(title.as_str()) + 2);
    if left < 12 {
        return format!("{front}  {title}");
    }
    format!("{front}  {title}  {DIM}{}{DIM:#}", plain::cut(&place, left))
}

/// The folder as people write it.
fn tilde(folder: &Path) -> String {
    match std::env::var_os("HOME").map(|home| folder.strip_prefix(home).map(Path::to_owned)) {
        Some(Ok(rest)) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(Ok(rest)) => format!("~/{}", rest.display()),
        _ => folder.display().to_string(),
    }
}

/// How long ago, in the largest unit.
pub(crate) fn age(age: Duration) -> String {
    match age.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min", seconds / 60),
        seconds @ 3600..86_400 => format!("{} h", seconds / 3600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// As wide as the terminal; without one, as wide as it takes.
pub(crate) fn columns() -> usize {
    terminal_size::terminal_size_of(std::io::stdout()).map_or(200, |(width, _)| usize::from(width.0))
}
