//! `pace completions`: prints the script with which a shell completes commands and options.

use std::io::Write;

use clap::Args;
use clap_complete::Shell;

use crate::usage;

#[derive(Debug, Args)]
#[command(after_help = "\
bash: pace completions bash > ~/.local/share/bash-completion/completions/pace
zsh:  pace completions zsh > \"${fpath[1]}/_pace\"
fish: pace completions fish > ~/.config/fish/completions/pace.fish")]
pub struct CompletionsArgs {
    /// Shell to write the script for.
    #[arg(value_enum)]
    shell: Shell,
}

pub fn run(args: &CompletionsArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    // The generator panics when it cannot write, for example to a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut usage::command(), "pace", &mut script);
    Ok(out.write_all(&script)?)
}
