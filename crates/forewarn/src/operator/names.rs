//! Names in responses, for `--output name`: words that other commands take as arguments.

use forewarn_cli_support::output::{as_name, names_in};
use serde_json::Value;

/// Lists of a response whose elements have names.
const LISTS: [&str; 3] = ["items", "checks", "stories"];

/// The names in a response: those of the elements of a list, the ids of the events that a change announced, or the name
/// of the object itself. The clock has its time.
pub(crate) fn names(response: &Value) -> Vec<String> {
    if let Some(list) = LISTS.iter().find_map(|list| response[*list].as_array()) {
        return list.iter().filter_map(name).collect();
    }
    if response["changes"].is_number() {
        return names_in(&response["events"], "id");
    }
    name(response).into_iter().collect()
}

/// The names of what a request made: the new resource, the rollout that it asks for, or else the announced events. Work
/// on hosts is a rollout as well, but its events are what an operator asks for next.
pub(super) fn names_of_change(request: &Value, response: &Value) -> Vec<String> {
    if !response["changes"].is_number() {
        return names(response);
    }
    if request["command"] == "start_rollout" {
        let rollouts = response["rollouts"].as_array().map(Vec::as_slice).unwrap_or_default();
        return rollouts.iter().filter_map(as_name).collect();
    }
    let resource =
        as_name(&request["name"]).or_else(|| member_of(&request["tenant"], &request["machine"]["name"]));
    resource.map_or_else(|| names(response), |resource| vec![resource])
}

/// The id of an object, else its name. A machine has the name of its tenant before its own.
fn name(object: &Value) -> Option<String> {
    let machine =
        || if object["host"].is_string() { member_of(&object["tenant"], &object["name"]) } else { None };
    let members = ["name", "check", "now"];
    let own = || members.iter().find_map(|member| as_name(&object[*member]));
    as_name(&object["id"]).or_else(machine).or_else(own)
}

fn member_of(tenant: &Value, name: &Value) -> Option<String> {
    Some(format!("{}/{}", tenant.as_str()?, name.as_str()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_has_an_id_or_a_name() {
        let name = |object: Value| names(&object);
        assert_eq!(name(json!({ "id": "28512AF7", "tenant": "web" })), ["28512AF7"]);
        assert_eq!(name(json!({ "id": 3, "work": "update" })), ["3"]);
        assert_eq!(name(json!({ "name": "web_0", "tenant": "web", "host": "h1" })), ["web/web_0"]);
        assert_eq!(name(json!({ "name": "web", "events": [] })), ["web"]);
        assert_eq!(name(json!({ "now": "2026-01-01T00:00:00Z", "speed": 0 })), ["2026-01-01T00:00:00Z"]);
        assert!(name(json!({ "cleared": 2 })).is_empty());
    }

    #[test]
    fn a_list_has_the_names_of_its_elements() {
        assert_eq!(names(&json!({ "items": [{ "name": "a" }, { "name": "b" }] })), ["a", "b"]);
        assert_eq!(
            names(&json!({ "findings": 0, "checks": [{ "check": "time", "result": "ok" }] })),
            ["time"]
        );
        assert!(names(&json!({ "items": [] })).is_empty());
    }

    #[test]
    fn a_change_has_the_names_of_what_it_made() {
        let outcome =
            json!({ "now": "x", "changes": 1, "events": [{ "id": "A" }, { "id": "B" }], "rollouts": [4] });
        assert_eq!(names(&outcome), ["A", "B"]);
        assert_eq!(names_of_change(&json!({ "command": "update_hosts" }), &outcome), ["A", "B"]);
        assert_eq!(names_of_change(&json!({ "command": "start_rollout" }), &outcome), ["4"]);
        let done = json!({ "now": "x", "changes": 1, "events": [], "rollouts": [] });
        assert!(names(&done).is_empty());
        let host = json!({ "command": "admit_host", "name": "h9" });
        assert_eq!(names_of_change(&host, &done), ["h9"]);
        let machine = json!({ "command": "admit_machine", "tenant": "db", "machine": { "name": "db-0" } });
        assert_eq!(names_of_change(&machine, &done), ["db/db-0"]);
        assert!(names_of_change(&json!({ "command": "restart", "machine": "a" }), &done).is_empty());
        assert_eq!(names_of_change(&json!({ "answer": "503" }), &json!({ "id": 2 })), ["2"]);
    }
}
