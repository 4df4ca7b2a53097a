//! `forewarn-agent check-config`: reports all errors in the settings, or lists the hooks.

use anyhow::Result;
use forewarn_agent_core::{Hook, Phase};
use forewarn_cli_support::output::names_in;
use forewarn_cli_support::table::{Table, Width};
use forewarn_cli_support::visible::visible;
use forewarn_types::show_duration;
use serde_json::{Value, json};

use super::{GlobalOptions, OutputFormat, print, print_data};

pub(super) fn command(options: &GlobalOptions) -> Result<()> {
    let config = options.load()?;
    for note in &config.notes {
        eprintln!("note: {}", visible(note));
    }
    let mut hooks = Vec::new();
    for phase in Phase::ALL {
        let mut of_phase: Vec<_> = config.hooks.iter().filter(|hook| hook.phase == phase).collect();
        of_phase.sort_by(|one, other| (one.order, &one.name).cmp(&(other.order, &other.name)));
        hooks.extend(of_phase);
    }
    match options.output() {
        OutputFormat::Text(width) => print(&table(&hooks, width).to_string())?,
        OutputFormat::Data(format) => {
            let hooks: Vec<_> = hooks.iter().map(|hook| entry(hook)).collect();
            let value = json!({ "file": config.file, "hooks": hooks, "notes": config.notes });
            print_data(format, &value, |value| names_in(&value["hooks"], "hook"))?;
        }
    }
    match &config.file {
        Some(file) => eprintln!("{} is valid", file.display()),
        None => eprintln!("{} not found: these are the default settings", crate::config::FILE),
    }
    Ok(())
}

fn table(hooks: &[&Hook], width: Width) -> Table {
    let headings = ["phase", "order", "hook", "limit", "retries", "undo"];
    let mut table = Table::new(width, &headings).dropping(&["retries", "order", "undo", "limit"]);
    for hook in hooks {
        table.row([
            hook.phase.as_str().to_owned(),
            hook.order.to_string(),
            hook.name.clone(),
            show_duration(hook.limit),
            hook.retries.to_string(),
            if hook.undoes { "yes" } else { "" }.to_owned(),
        ]);
    }
    table
}

fn entry(hook: &Hook) -> Value {
    json!({
        "phase": hook.phase,
        "order": hook.order,
        "hook": hook.name,
        "limit_seconds": hook.limit.as_secs_f64(),
        "retries": hook.retries,
        "undo": hook.undoes,
    })
}
