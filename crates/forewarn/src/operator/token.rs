//! `forewarn token`: API tokens, their roles and scopes.

use anyhow::{Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use forewarn_control::{IssuedToken, NewToken, Outcome, RoleWord, TokenView};
use forewarn_http_client::Method;
use forewarn_types::{Moment, Span};

use super::sentences::Wording;
use super::session::{Session, escaped, parse, print};
use super::table::{Table, Width, listed};
use super::{DataFormat, Name, OutputFormat, not_empty, sentences, visible};

const EXAMPLES: &str = "\
Examples:
  forewarn token create grafana --role viewer
  forewarn token create ci --role operator --cluster west --tenant web --expires 90d
  export FOREWARN_TOKEN=$(forewarn token create me --role admin)";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Create a token and print its secret, which cannot be shown again
    #[command(before_help = EXAMPLES)]
    Create(NewTokenArgs),
    /// List tokens, without their secrets
    Ls,
    /// Show a token, without its secret
    Show {
        /// Token
        name: Name,
    },
    /// Delete tokens: from then on they are rejected
    #[command(alias = "revoke", before_help = "Example:\n  forewarn token delete ci")]
    Delete {
        /// Tokens
        #[arg(required = true, value_name = "NAME")]
        names: Vec<Name>,
        /// Delete the last admin token without a question
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Args)]
pub(crate) struct NewTokenArgs {
    /// Name of the token
    name: Name,
    /// Role of the token
    #[arg(long, value_enum)]
    role: RoleArg,
    /// Limit the token to this cluster; repeatable [default: all]
    #[arg(long, value_name = "CLUSTER", value_parser = not_empty)]
    cluster: Vec<String>,
    /// Limit the token to this tenant or scale set; repeatable [default: all]
    #[arg(long, value_name = "TENANT")]
    tenant: Vec<Name>,
    /// Lifetime, such as 90d [default: unlimited]
    #[arg(long, value_name = "DURATION")]
    expires: Option<Span>,
}

#[derive(Clone, Copy, ValueEnum)]
enum RoleArg {
    /// Read only
    Viewer,
    /// Work on machines and hosts
    Operator,
    /// Also manage the fleet, settings and tokens
    Admin,
}

pub(super) fn run(session: &Session, command: Command) -> Result<()> {
    match command {
        Command::Create(new) => create(session, new),
        Command::Ls => {
            let now = session.now()?;
            session.list("/v1/tokens", |tokens: Vec<TokenView>| Ok(table(&tokens, now, session.width())))
        }
        Command::Show { name } => {
            let now = session.now()?;
            session.show(&path(&name), |token| Ok(facts(token, now)))
        }
        Command::Delete { names, yes } => names.iter().try_for_each(|name| {
            if !yes {
                check_admin_is_left(session, &name.0)?;
            }
            let response = session.change(Method::DELETE, &path(name), None::<&()>)?;
            let wording = Wording::deletion("token", &name.0);
            session.present(response, |outcome: Outcome| Ok(sentences::outcome(&outcome, &wording)))
        }),
    }
}

/// Refuses to delete the last token of an admin for everything, except where no token is needed, as on a socket.
fn check_admin_is_left(session: &Session, name: &str) -> Result<()> {
    if !session.client().needs_token() {
        return Ok(());
    }
    let tokens = session.all::<TokenView>("/v1/tokens")?;
    let is_admin = |token: &&TokenView| {
        token.role == RoleWord::Admin && !token.expired && token.clusters.is_none() && token.tenants.is_none()
    };
    let mut admins = tokens.iter().filter(is_admin);
    let is_last = admins.next().is_some_and(|one| one.name == name) && admins.next().is_none();
    if is_last {
        bail!(
            "this is the last admin token: {name}\n  hint: without it, only the socket of the server can administer it; \
             create another token first, or repeat with --yes"
        );
    }
    Ok(())
}

/// Only the secret goes to standard output, so that a script can store it without printing it.
fn create(session: &Session, new: NewTokenArgs) -> Result<()> {
    if session.output() == OutputFormat::Data(DataFormat::Name) {
        bail!(
            "the name alone is not enough: the secret is not shown again\n  hint: --output table or --output json"
        );
    }
    let response = session.post("/v1/tokens", &NewToken::from(new))?;
    match session.output() {
        OutputFormat::Data(_) => session.present(response, |_: IssuedToken| Ok(String::new())),
        OutputFormat::Text(_) => {
            let IssuedToken { text, token } = parse(response)?;
            eprintln!("{}", visible(&hint(&token)));
            print(&format!("{text}\n"))
        }
    }
}

fn hint(token: &TokenView) -> String {
    let until = token.expires.map(|at| format!(", until {}", sentences::date(at))).unwrap_or_default();
    format!(
        "Token {}: {}, {}{until}.\nThe secret is not shown again. Use it as FOREWARN_TOKEN, or with --token.",
        token.name,
        word(token.role),
        scope(token),
    )
}

fn path(Name(name): &Name) -> String {
    format!("/v1/tokens/{}", escaped(name))
}

impl From<NewTokenArgs> for NewToken {
    fn from(new: NewTokenArgs) -> Self {
        let some = |names: Vec<String>| (!names.is_empty()).then_some(names);
        Self {
            name: new.name.0,
            role: match new.role {
                RoleArg::Viewer => RoleWord::Viewer,
                RoleArg::Operator => RoleWord::Operator,
                RoleArg::Admin => RoleWord::Admin,
            },
            // An empty environment variable counts as unset.
            clusters: some(new.cluster.into_iter().filter(|name| !name.is_empty()).collect()),
            tenants: some(new.tenant.into_iter().map(|Name(name)| name).collect()),
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

/// The scope of a token: `all clusters`, `cluster west`, `tenants web, db of cluster west`.
fn scope(token: &TokenView) -> String {
    let some = |what: &str, names: &[String]| {
        let plural = if names.len() == 1 { "" } else { "s" };
        format!("{what}{plural} {}", names.join(", "))
    };
    match (&token.clusters, &token.tenants) {
        (None, None) => "all clusters".to_owned(),
        (Some(clusters), None) => some("cluster", clusters),
        (None, Some(tenants)) => some("tenant", tenants),
        (Some(clusters), Some(tenants)) => {
            format!("{} of {}", some("tenant", tenants), some("cluster", clusters))
        }
    }
}

fn table(tokens: &[TokenView], now: Moment, width: Width) -> String {
    let headings = ["name", "role", "clusters", "tenants", "expires", "created", "by"];
    let dropped = ["by", "created", "clusters", "tenants", "expires"];
    let mut table = Table::new(width, &headings).dropping(&dropped);
    let all = |names: &Option<Vec<String>>| names.as_ref().map_or_else(|| "all".to_owned(), listed);
    for token in tokens {
        table.row([
            token.name.clone(),
            word(token.role).to_owned(),
            all(&token.clusters),
            all(&token.tenants),
            expiry(token, now),
            sentences::date(token.created),
            token.by.clone(),
        ]);
    }
    table.to_string()
}

fn facts(token: TokenView, now: Moment) -> String {
    let facts = [
        ("role", word(token.role).to_owned()),
        ("scope", scope(&token)),
        ("expires", expiry(&token, now)),
        ("created", sentences::date(token.created)),
        ("by", token.by),
    ];
    Table::facts([("name", token.name)].into_iter().chain(facts)).to_string()
}

fn expiry(token: &TokenView, now: Moment) -> String {
    match token.expires {
        Some(at) => sentences::when(at, now),
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
    fn tokens_are_listed_with_their_scopes() {
        assert_eq!(
            table(&tokens(), "2026-01-01T00:00:00Z".parse().unwrap(), Width::Wide),
            "NAME   ROLE      CLUSTERS  TENANTS  EXPIRES                       CREATED               BY\n\
             first  admin     all       all      never                         2026-01-01 00:00:00Z  forewarn\n\
             ci     operator  west      web, db  2026-01-01 01:00:00Z (in 1h)  2026-01-01 00:00:00Z  socket\n"
        );
    }

    #[test]
    fn the_scope_is_printed_when_a_token_is_created() {
        let [first, ci] = <[TokenView; 2]>::try_from(tokens()).unwrap();
        assert!(hint(&first).starts_with("Token first: admin, all clusters.\n"), "{}", hint(&first));
        assert_eq!(
            hint(&ci).lines().next(),
            Some("Token ci: operator, tenants web, db of cluster west, until 2026-01-01 01:00:00Z.")
        );
    }
}
