//! `swb man`: manual pages, made from the tree of arguments.

use std::io::Write;

use crate::args::ManArgs;
use crate::exit_code;
use crate::failure::Failure;
use crate::io::Io;
use crate::reference;

pub(crate) fn run(args: &ManArgs, io: &Io) -> Result<u8, Failure> {
    if let Some(folder) = &args.out {
        std::fs::create_dir_all(folder)?;
        let pages = reference::man_pages()?;
        for (name, page) in &pages {
            std::fs::write(folder.join(name), page)?;
        }
        io.line(format!("wrote {} pages into {}", pages.len(), folder.display()))?;
        return Ok(exit_code::SUCCESS);
    }
    let wanted = args.command.as_deref().map_or("swb.1".to_owned(), |command| format!("swb-{command}.1"));
    let Some((_, page)) = reference::man_pages()?.into_iter().find(|(name, _)| *name == wanted) else {
        let command = args.command.as_deref().unwrap_or_default();
        return Err(Failure::new(format!("there is no command {command}"))
            .code(exit_code::USAGE)
            .hint("`swb --help` lists them"));
    };
    std::io::stdout().write_all(&page)?;
    Ok(exit_code::SUCCESS)
}
