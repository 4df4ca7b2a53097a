//! `forewarn token`: who may do what.

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use forewarn_control::{IssuedToken, NewToken, Outcome, RoleWord, TokenView};
use forewarn_http_client::Method;
use forewarn_types::{Moment, Span};

use super::session::{Session, escaped, print, understand};
use super::table::{Table, listed};
use super::{Named, Output, not_empty, say, visible};

const EXAMPLES: &str = "\
Examples:
  forewarn token create grafana --role viewer
  forewarn token create ci --role operator --cluster west --tenant web --expires 90d
  export FOREWARN_TOKEN=$(forewarn token create me --role admin)";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Issue a token. Its text is printed, once.
    #[command(after_help = EXAMPLES)]
    Create(New),
    /// List tokens; nobody can see their texts again.
    Ls,
    /// Show a token, without its text.
    Show {
        /// Its name.
        name: Named,
    },
    /// Revoke tokens: they are good no longer.
    Revoke {
        /// Their names.
        #[arg(required = true, value_name = "NAME")]
        names: Vec<Named>,
    },
}

#[derive(Args)]
pub(crate) struct New {
    /// What to call it.
    name: Named,
    /// What its holder may do.
    #[arg(long, value_enum)]
    role: Role,
    /// Only in this cluster; may be said more than once. In all, if not said.
    #[arg(long, value_name = "CLUSTER", value_parser = not_empty)]
    cluster: Vec<String>,
    /// Only for this tenant, or this scale set; may be said more than once. For all, if not said.
    #[arg(long, value_name = "TENANT")]
    tenant: Vec<Named>,
    /// For how long it is good: 90d. Without an end, if not said.
    #[arg(long, value_name = "DURATION")]
    expires: Option<Span>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Role {
    /// Looks.
    Viewer,
    /// Works on machines and hosts.
    Operator,
    /// Says what there is, how it behaves, and who may do what.
    Admin,
}

pub(super) fn run(session: &Session, command: Command) -> Result<()> {
    match command {
        Command::Create(new) => create(session, new),
        Command::Ls => {
            let now = session.now()?;
            session.list("/v1/tokens", |tokens: Vec<TokenView>| Ok(table(&tokens, now)))
        }
        Command::Show { name } => {
            let now = session.now()?;
            session.show(&path(&name), |token| Ok(facts(token, now)))
        }
        Command::Revoke { names } => names.iter().try_for_each(|name| {
            let answer = session.change(Method::DELETE, &path(name), None::<&()>)?;
            let said = |outcome: Outcome| Ok(say::outcome(&outcome, &format!("token {} is revoked", name.0)));
            session.present(answer, said)
        }),
    }
}

/// The text is all that goes to standard output: it can be put where it belongs without being seen.
fn create(session: &Session, new: New) -> Result<()> {
    let answer = session.post("/v1/tokens", &NewToken::from(new))?;
    match session.output() {
        Output::Json => session.present(answer, |_: IssuedToken| Ok(String::new())),
        Output::Table | Output::Wide => {
            let IssuedToken { text, token } = understand(answer)?;
            eprintln!("{}", visible(&hint(&token)));
            print(&format!("{text}\n"))
        }
    }
}

fn hint(token: &TokenView) -> String {
    let until = token.expires.map(|at| format!(", until {}", say::date(at))).unwrap_or_default();
    format!(
        "Token {}: {}, {}{until}.\nThis is the only time that it is shown. Use it as FOREWARN_TOKEN, or with --token.",
        token.name,
        word(token.role),
        reach(token),
    )
}

fn path(Named(name): &Named) -> String {
    format!("/v1/tokens/{}", escaped(name))
}

impl From<New> for NewToken {
    fn from(new: New) -> Self {
        let some = |names: Vec<String>| (!names.is_empty()).then_some(names);
        Self {
            name: new.name.0,
            role: match new.role {
                Role::Viewer => RoleWord::Viewer,
                Role::Operator => RoleWord::Operator,
                Role::Admin => RoleWord::Admin,
            },
            // A variable that is empty counts as one that is not there.
            clusters: some(new.cluster.into_iter().filter(|name| !name.is_empty()).collect()),
            tenants: some(new.tenant.into_iter().map(|Named(name)| name).collect()),
            expires: None,
            expires_in: new.expires,
        }
    }
}

fn word(role: RoleWord) -> &'static str {
    match role {
        RoleWord::Viewer => "viewer",
        RoleWord::Operator => "operator",
        RoleWord::Admin => "admin",
    }
}

/// What a token is good for: `everything`, `cluster west`, `tenants web, db of cluster west`.
fn reach(token: &TokenView) -> String {
    let some = |what: &str, names: &[String]| {
        let plural = if names.len() == 1 { "" } else { "s" };
        format!("{what}{plural} {}", names.join(", "))
    };
    match (&token.clusters, &token.tenants) {
        (None, None) => "everything".to_owned(),
        (Some(clusters), None) => some("cluster", clusters),
        (None, Some(tenants)) => some("tenant", tenants),
        (Some(clusters), Some(tenants)) => {
            format!("{} of {}", some("tenant", tenants), some("cluster", clusters))
        }
    }
}

fn table(tokens: &[TokenView], now: Moment) -> String {
    let mut table = Table::new(&["name", "role", "clusters", "tenants", "expires", "created", "by"]);
    let all = |names: &Option<Vec<String>>| names.as_ref().map_or_else(|| "all".to_owned(), listed);
    for token in tokens {
        table.row([
            token.name.clone(),
            word(token.role).to_owned(),
            all(&token.clusters),
            all(&token.tenants),
            expiry(token, now),
            say::date(token.created),
            token.by.clone(),
        ]);
    }
    table.to_string()
}

fn facts(token: TokenView, now: Moment) -> String {
    let facts = [
        ("role", word(token.role).to_owned()),
        ("good for", reach(&token)),
        ("expires", expiry(&token, now)),
        ("created", say::date(token.created)),
        ("by", token.by),
    ];
    Table::facts([("name", token.name)].into_iter().chain(facts)).to_string()
}

fn expiry(token: &TokenView, now: Moment) -> String {
    match token.expires {
        Some(at) => say::when(at, now),
        None => "never".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens() -> Vec<TokenView> {
        let json = r#"[
            {"name":"first","role":"admin","clusters":null,"tenants":null,"created":"2026-01-01T00:00:00Z",
             "expires":null,"expired":false,"by":"forewarn"},
            {"name":"ci","role":"operator","clusters":["west"],"tenants":["web","db"],
             "created":"2026-01-01T00:00:00Z","expires":"2026-01-01T01:00:00Z","expired":false,"by":"socket"}]"#;
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn tokens_are_listed_with_what_they_are_good_for() {
        assert_eq!(
            table(&tokens(), "2026-01-01T00:00:00Z".parse().unwrap()),
            "NAME   ROLE      CLUSTERS  TENANTS  EXPIRES                       CREATED               BY\n\
             first  admin     all       all      never                         2026-01-01 00:00:00Z  forewarn\n\
             ci     operator  west      web, db  2026-01-01 01:00:00Z (in 1h)  2026-01-01 00:00:00Z  socket\n"
        );
    }

    #[test]
    fn what_a_token_is_good_for_is_said_when_it_is_issued() {
        let [first, ci] = <[TokenView; 2]>::try_from(tokens()).unwrap();
        assert!(hint(&first).starts_with("Token first: admin, everything.\n"), "{}", hint(&first));
        assert_eq!(
            hint(&ci).lines().next(),
            Some("Token ci: operator, tenants web, db of cluster west, until 2026-01-01 01:00:00Z.")
        );
    }
}
