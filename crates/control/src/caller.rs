//! The caller of a request, made from its permit.

use crate::access::Permit;
use crate::request::RequestContext;

impl Permit {
    /// The context of a request with this permit. The token is checked again when the request is decided.
    #[must_use]
    pub fn context(&self) -> RequestContext {
        RequestContext { by: self.by.clone(), token: self.token, ..RequestContext::default() }
    }
}
