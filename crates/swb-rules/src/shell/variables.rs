//! Variables of the environment that matter: those that steer programs, those that hold secrets.

use super::programs::lists;

/// Variables whose value is probably a secret.
pub(super) fn sounds_secret(variable: &str) -> bool {
    let name = variable.to_ascii_uppercase();
    [
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "PASSPHRASE",
        "CREDENTIAL",
        "API_KEY",
        "APIKEY",
        "ACCESS_KEY",
        "PRIVATE_KEY",
    ]
    .iter()
    .any(|part| name.contains(part))
}

/// Variables that make other programs run code or find other programs.
pub(super) fn steers_programs(variable: &str) -> bool {
    const NAMES: &str = "\
        BASH_ENV BROWSER CDPATH EDITOR ENV GLOBIGNORE HOME IFS JAVA_TOOL_OPTIONS LESSCLOSE LESSOPEN \
        MANPAGER NODE_OPTIONS NODE_PATH PAGER PATH PERL5DB PERL5LIB PERL5OPT PROMPT_COMMAND PS0 PS1 PS4 \
        PYTHONHOME PYTHONINSPECT PYTHONPATH PYTHONSTARTUP PYTHONWARNINGS RIPGREP_CONFIG_PATH RUBYLIB \
        RUBYOPT RUSTC RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER SHELL SHELLOPTS BASHOPTS VISUAL MAKEFLAGS \
        MAKEFILES CC CXX LD PWD OLDPWD";
    const PREFIXES: &str = "LD_ DYLD_ GIT_ CARGO_ SWB_ BASH_FUNC_ npm_config_ NPM_CONFIG_ SSH_ XDG_";
    const HARMLESS: &str = "CARGO_TERM_ CARGO_INCREMENTAL GIT_AUTHOR_ GIT_COMMITTER_ SWB_LOG";
    if starts_like(HARMLESS, variable) {
        return false;
    }
    lists(NAMES, variable) || starts_like(PREFIXES, variable)
}

fn starts_like(prefixes: &str, variable: &str) -> bool {
    prefixes.split_ascii_whitespace().any(|prefix| variable.starts_with(prefix))
}
