//! The message bus through its public door: files on disk, several processes, damage, rotation, following.
//!
//! The incumbent's weaknesses, and what proves that they are not ours:
//!
//! | weakness | test |
//! |---|---|
//! | a body reads differently once something follows it | `read::a_message_reads_the_same_whatever_follows_it` |
//! | a body forges, swallows or hides records | `append::a_body_that_looks_like_records_is_one_body`, `damage::text_behind_a_foreign_rule_line_swallows_nothing` |
//! | the last N are garbage if bodies look like headers | `read::the_last_messages_are_right_even_if_every_body_looks_like_a_header` |
//! | ids of legacy lines change with the way of reading | `read::legacy_ids_are_stable_cursors_in_long_files` |
//! | rotation loses records, archives overwrite each other | `processes::eight_processes_with_rotation_…`, `interchange::our_rotation_loses_nothing_…` |
//! | archived history and cursors into it are lost | `rotation::reads_go_across_archives_as_if_there_were_none` |
//! | ids are not in the order of the file | `append::ids_never_fall_below_the_last_one_in_the_file`, `processes` |
//! | a reader sees half a record and moves past it | `follow::a_record_in_the_middle_of_being_written_is_not_shown_in_part` |
//! | a torn tail is never repaired | `damage` |
//! | a last record without an id is sent again for ever | `follow::a_phantom_last_record_is_shown_once` |
//! | a linked file or project folder leads out of the root | `append::a_symlinked_bus_is_refused_…`; `doors` of the gateway |
//! | a relative `--from` does not climb; a stray `config.yaml` is read, another made | `house` and `post` of the command line |
//! | headers after 30 s, names of Go fields, a dead metric, one broken file blocks a project, exit 1 after SIGTERM | the gateway's `stream`, `messages`, `surface`; `token` of the command line |

#![expect(clippy::unwrap_used, reason = "in a test, also in its helpers, a panic is the report")]

mod append;
mod cursors;
mod damage;
mod fixtures;
mod follow;
mod interchange;
mod processes;
mod read;
mod rotation;
mod support;
