//! Requests to the control plane, as servers send them to each other: read or rejected, and written as they were read.

use forewarn_control::request::Request;

pub(crate) fn examine(bytes: &[u8]) -> String {
    let request = match serde_json::from_slice::<Request>(bytes) {
        Ok(request) => request,
        Err(problem) => return problem.to_string().lines().next().unwrap_or_default().to_owned(),
    };
    let written = serde_json::to_vec(&request).expect("a request that was read can be written");
    let again = serde_json::from_slice::<Request>(&written).expect("a request that was written can be read");
    assert_eq!(again, request, "read otherwise than written");
    match request {
        Request::Cluster(..) => "a request to a cluster".to_owned(),
        Request::Shared(_) => "a request to the shared state".to_owned(),
    }
}
