//! Shell syntax for setting and removing variables.

use clap::ValueEnum;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Shell {
    /// sh, bash, zsh and similar shells
    #[default]
    Sh,
    /// fish
    Fish,
    /// PowerShell
    Powershell,
}

impl Shell {
    /// The line that sets a variable to any value.
    pub(super) fn set(self, name: &str, value: &str) -> String {
        match self {
            Self::Sh => format!("export {name}='{}';\n", value.replace('\'', r"'\''")),
            Self::Fish => {
                format!("set -gx {name} '{}';\n", value.replace('\\', r"\\").replace('\'', r"\'"))
            }
            Self::Powershell => format!("$Env:{name} = '{}';\n", value.replace('\'', "''")),
        }
    }

    /// The value of a variable, as one word of a command.
    pub(super) fn variable(self, name: &str) -> String {
        match self {
            Self::Sh | Self::Fish => format!("\"${name}\""),
            Self::Powershell => format!("$Env:{name}"),
        }
    }

    /// The line that removes a variable, if it is set.
    pub(super) fn unset(self, name: &str) -> String {
        match self {
            Self::Sh => format!("unset {name};\n"),
            Self::Fish => format!("set -e {name};\n"),
            Self::Powershell => format!("Remove-Item Env:{name} -ErrorAction SilentlyContinue;\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_quotes_in_its_own_way() {
        let value = r"a 'b' $c \d";
        assert_eq!(Shell::Sh.set("A", value), "export A='a '\\''b'\\'' $c \\d';\n");
        assert_eq!(Shell::Fish.set("A", value), "set -gx A 'a \\'b\\' $c \\\\d';\n");
        assert_eq!(Shell::Powershell.set("A", value), "$Env:A = 'a ''b'' $c \\d';\n");
        assert_eq!(Shell::Sh.unset("A"), "unset A;\n");
        assert_eq!(Shell::Fish.unset("A"), "set -e A;\n");
        assert_eq!(Shell::Powershell.unset("A"), "Remove-Item Env:A -ErrorAction SilentlyContinue;\n");
    }

    #[test]
    fn sh_reads_the_value_unchanged() {
        let value = "a 'b' $c \\d \"e\" `f`\n";
        let script = format!("{}printf %s \"$A\"", Shell::Sh.set("A", value));
        let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), value);
    }
}
