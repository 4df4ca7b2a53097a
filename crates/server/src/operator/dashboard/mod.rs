//! The web dashboard: its files, its logins, and its requests told apart from those of other pages.
//!
//! The page is static and needs no token; everything that it shows comes from the operator API. Where the API needs a
//! token, the page exchanges it once for a cookie that scripts cannot read.

mod cookie;
mod files;
mod login;
mod own_page;
#[cfg(test)]
mod tests;

pub use cookie::{cookie_value, session_cookie};
pub(super) use files::{is_file, routes};
pub(super) use login::{SESSION_PATH, session_of, session_routes};
pub use own_page::{OWN_PAGE_HEADER, is_own_page};
