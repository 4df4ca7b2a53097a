//! Commands with which `az` logs in, by its version.
//!
//! | `az` | managed identity | service principal |
//! |---|---|---|
//! | 2.75 and later | `--identity` | any directory |
//! | 2.71 to 2.74 | `--identity`, with `AZURE_CORE_USE_MSAL_MANAGED_IDENTITY` | any directory |
//! | 2.54 to 2.70 | always uses 169.254.169.254 | any directory |
//! | 2.53 and earlier | always uses 169.254.169.254 | a cloud whose directory ends in `/adfs` |

use super::shell::Shell;

/// A secret of a service principal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PrincipalSecret {
    /// Any text: `forewarn dev` has no authentication.
    Any,
    /// The text of an operator's token, in `FOREWARN_TOKEN`.
    Token,
}

/// The name of the cloud that older versions of `az` register.
const CLOUD: &str = "ForewarnADFS";

/// The resource of the tokens that `az` requests.
const RESOURCE: &str = "https://management.core.windows.net/";

/// Logs in with the managed identity of `forewarn dev`.
pub(super) const IDENTITY: &str = "az login --identity";

/// Logs in as a service principal, from az 2.54.
pub(super) fn service_principal(secret: PrincipalSecret, shell: Shell) -> String {
    let secret = secret.word(shell);
    format!("az login --service-principal --username forewarn --password {secret} --tenant forewarn")
}

/// Registers a cloud with a directory of Active Directory Federation Services, which az 2.53 and earlier do not check
/// with the real cloud, and logs in there. One line, so that it can be pasted.
pub(super) fn older_service_principal(secret: PrincipalSecret, url: &str, shell: Shell) -> String {
    let secret = secret.word(shell);
    let register = format!(
        "az cloud register --name {CLOUD} --endpoint-resource-manager {url} --endpoint-management {url} \
         --endpoint-active-directory {url}/adfs --endpoint-active-directory-resource-id {RESOURCE} \
         --endpoint-active-directory-graph-resource-id {url}/"
    );
    format!(
        "{register}; az cloud set --name {CLOUD}; \
         az login --service-principal --username forewarn --password {secret} --tenant adfs"
    )
}

impl PrincipalSecret {
    /// The secret as a word of a shell command.
    fn word(self, shell: Shell) -> String {
        match self {
            Self::Any => "x".to_owned(),
            Self::Token => shell.variable("FOREWARN_TOKEN"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_written_as_the_shell_reads_it() {
        let login = |secret, shell| service_principal(secret, shell);
        assert_eq!(
            login(PrincipalSecret::Any, Shell::Sh),
            "az login --service-principal --username forewarn --password x --tenant forewarn"
        );
        assert!(login(PrincipalSecret::Token, Shell::Sh).contains(" --password \"$FOREWARN_TOKEN\" "));
        assert!(login(PrincipalSecret::Token, Shell::Fish).contains(" --password \"$FOREWARN_TOKEN\" "));
        assert!(
            login(PrincipalSecret::Token, Shell::Powershell).contains(" --password $Env:FOREWARN_TOKEN ")
        );
    }

    #[test]
    fn older_versions_log_in_at_a_directory_that_they_do_not_check_elsewhere() {
        let line = older_service_principal(PrincipalSecret::Any, "https://127.0.0.1:7", Shell::Sh);
        assert!(line.contains("--endpoint-active-directory https://127.0.0.1:7/adfs "), "{line}");
        assert!(line.ends_with("--password x --tenant adfs") && !line.contains('\n'), "{line}");
    }
}
