//! The rest of the metadata service.

use crate::metadata::support::{NEWEST, SOLO, WEB_0, WEB_1, get, start_server};

#[tokio::test]
async fn a_machine_learns_about_itself() {
    let server = start_server().await;
    let ask = async |path: &str| {
        let answer = server.get(WEB_0, &format!("/metadata/instance{path}")).await;
        (answer.status(), answer.header("Content-Type").unwrap().to_owned(), answer.body)
    };
    let json = "application/json; charset=utf-8".to_owned();
    let (status, content_type, whole) = ask("?api-version=2021-02-01").await;
    assert_eq!((status, &content_type), (200, &json));
    assert!(whole.starts_with(r#"{"compute":{"#) && whole.contains(r#""name":"web_0""#), "{whole}");
    let text = "text/plain; charset=utf-8".to_owned();
    let name = ask("/compute/name?api-version=2017-08-01&format=text").await;
    assert_eq!(name, (200, text.clone(), "web_0".to_owned()));
    let mac = ask("/network/interface/0/macAddress/?format=text&api-version=2017-04-02").await;
    assert_eq!(mac, (200, text, "020F00000002".to_owned()));
    let leaf = ask("/Compute/Name?api-version=2017-08-01").await;
    let message = r#"{ "error": "Bad request: a single value needs format=text" }"#;
    assert_eq!(leaf, (400, json.clone(), message.to_owned()));
    let format = ask("?api-version=2017-08-01&format=xml").await;
    assert_eq!(
        (format.0, format.2.as_str()),
        (400, r#"{ "error": "Bad request: format must be json or text" }"#)
    );
    let nothing = ask("/compute/nothing?api-version=2017-08-01&format=text").await;
    assert_eq!(nothing, (404, json, r#"{ "error": "Not found" }"#.to_owned()));
}

/// promise: M2
#[tokio::test]
async fn what_is_not_there_is_not_found_whatever_the_method() {
    let server = start_server().await;
    for (path, status) in [("/compute/nothing", 404), ("/compute/name", 405), ("", 405)] {
        let request = get(&format!("/metadata/instance{path}?api-version=2021-02-01"));
        for method in ["POST", "PUT"] {
            let answer = server.send_once(WEB_0, &request.replace("GET", method)).await;
            assert_eq!(answer.status(), status, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn versions_need_no_version() {
    let answer = start_server().await.get(WEB_0, "/metadata/versions").await;
    assert_eq!(answer.status(), 200);
    assert!(answer.body.starts_with(r#"{"apiVersions":["2017-03-01","2017-04-02","#), "{}", answer.body);
    assert!(answer.body.ends_with(r#","2025-04-07"]}"#), "{}", answer.body);
}

#[tokio::test]
async fn members_are_the_names_of_the_own_tenant() {
    let server = start_server().await;
    // Publishes the tenant as it is now.
    server.get(WEB_0, NEWEST).await;
    let target = "/metadata/forewarn/members?api-version=2020-07-01";
    assert_eq!(server.get(WEB_1, target).await.short(), (200, r#"{"members":["web_0","web_1","web_10"]}"#));
    assert_eq!(server.get(SOLO, NEWEST).await.status(), 200);
    assert_eq!(server.get(SOLO, target).await.short(), (200, r#"{"members":["solo"]}"#));
}
