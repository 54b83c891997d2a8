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
    let wanted = [&["swb".to_owned()], args.command.as_slice()].concat().join("-") + ".1";
    let Some((_, page)) = reference::man_pages()?.into_iter().find(|(name, _)| *name == wanted) else {
        let message = format!("there is no command {}", args.command.join(" "));
        return Err(Failure::new(message).code(exit_code::USAGE).hint("`swb --help` lists them"));
    };
    std::io::stdout().write_all(&page)?;
    Ok(exit_code::SUCCESS)
}
