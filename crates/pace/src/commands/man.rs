//! `pace man`: writes manual pages, generated from the definitions of the commands.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_mangen::Man;
use pace_lab::{create_folder, write_atomically};

use crate::usage;

#[derive(Debug, Args)]
pub struct ManArgs {
    /// Folder to write the pages to, for example ~/.local/share/man/man1. Created if it does not exist.
    out: PathBuf,
}

pub fn run(args: &ManArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    create_folder(&args.out)?;
    let n_pages = write_pages(&usage::command(), &args.out)?;
    Ok(writeln!(out, "wrote {n_pages} manual pages to {}", args.out.display())?)
}

/// Writes the pages of `command` and its subcommands, and returns their number.
fn write_pages(command: &Command, folder: &Path) -> anyhow::Result<usize> {
    // `pace-train` for `pace train`.
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    write_atomically(&folder.join(format!("{name}.1")), &page)?;
    let mut n_pages = 1;
    let is_shown = |inner: &&Command| !inner.is_hide_set() && inner.get_name() != "help";
    for inner in command.get_subcommands().filter(is_shown) {
        n_pages += write_pages(inner, folder)?;
    }
    Ok(n_pages)
}
