//! `forewarn-agent check-config`: reports all errors in the settings, or lists the hooks.

use anyhow::Result;
use forewarn_agent_core::Phase;
use forewarn_cli_support::table::Table;
use forewarn_cli_support::visible::visible;
use forewarn_types::show_duration;

use super::{GlobalOptions, print};

pub(super) fn command(options: &GlobalOptions) -> Result<()> {
    let config = options.load()?;
    for note in &config.notes {
        eprintln!("note: {}", visible(note));
    }
    let mut table = Table::new(&["phase", "order", "hook", "limit", "retries", "undo"]);
    for phase in Phase::ALL {
        let mut hooks: Vec<_> = config.hooks.iter().filter(|hook| hook.phase == phase).collect();
        hooks.sort_by(|one, other| (one.order, &one.name).cmp(&(other.order, &other.name)));
        for hook in hooks {
            table.row([
                phase.as_str().to_owned(),
                hook.order.to_string(),
                hook.name.clone(),
                show_duration(hook.limit),
                hook.retries.to_string(),
                if hook.undoes { "yes" } else { "" }.to_owned(),
            ]);
        }
    }
    print(&table.to_string())?;
    match &config.file {
        Some(file) => eprintln!("{} is valid", file.display()),
        None => eprintln!("{} not found: these are the default settings", crate::config::FILE),
    }
    Ok(())
}
