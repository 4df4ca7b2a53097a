//! The routes of clusters, tokens, and of how a cluster behaves.

use forewarn_control::schema::Name;
use forewarn_control::shared::Role;
use forewarn_control::{
    BrakeView, ClusterChange, ClusterView, IssuedToken, Items, NewCluster, NewToken, Outcome, PolicyEntry,
    SettingsChange, SettingsView, Site, SiteChange, TokenView,
};
use serde_json::json;

use super::fault::Kind::{NotFound, Refused, Unavailable};
use super::needs::Needs;
use super::page::Paging;
use super::route::{Link, Route, Subject};
use super::{access, behaviour};

const FIRST_NAME: &str = "$response.body#/items/0/name";
const NAME: &str = "$response.body#/name";
const SENT_NAME: &str = "$request.body#/name";
const SAME_NAME: &str = "$request.path.name";

pub(super) fn routes() -> Vec<Route> {
    [clusters(), tokens(), settings(), site_and_policy()].into_iter().flatten().collect()
}

fn clusters() -> Vec<Route> {
    let host = json!({ "command": "admit_host", "name": "h1" });
    vec![
        Route::get(
            "/v1/clusters",
            "listClusters",
            "Clusters: how much is in them, whether they are held",
            access::clusters,
        )
        .query::<Paging>()
        .json::<Items<ClusterView>>()
        .may_be(&[Unavailable])
        .link(Link::next_page("listClusters"))
        .link(Link::to("getCluster", "One of them.").with("name", FIRST_NAME))
        .link(Link::to("listHosts", "The hosts of one.").with("cluster", FIRST_NAME))
        .link(Link::to("getSettings", "How one behaves.").with("cluster", FIRST_NAME))
        .link(Link::to("renameCluster", "One of them is renamed.").with("name", FIRST_NAME)),
        Route::post::<NewCluster, _, _>(
            "/v1/clusters",
            "createCluster",
            "Another cluster",
            access::create_cluster,
        )
        .needs(Needs::OfServer(Role::Admin))
        .json::<Outcome>()
        .may_be(&[Refused, Unavailable])
        .link(Link::to("getCluster", "What it is.").with("name", SENT_NAME))
        .link(Link::to("sendCommand", "A host joins it.").with("cluster", SENT_NAME).sending(host))
        .link(Link::to("createScaleSet", "A scale set joins it.").with("cluster", SENT_NAME))
        .link(Link::to("applyFleet", "It gets a fleet.").with("cluster", SENT_NAME))
        .link(Link::to("setBrake", "Its starts are held.").with("cluster", SENT_NAME))
        .link(Link::to("changeSite", "Its machines are told where they are.").with("cluster", SENT_NAME))
        .link(Link::to("renameCluster", "It is renamed.").with("name", SENT_NAME))
        .link(Link::to("removeCluster", "It goes again.").with("name", SENT_NAME)),
        Route::get("/v1/clusters/{name}", "getCluster", "A cluster", access::cluster)
            .part::<Name>("name")
            .json::<ClusterView>()
            .tagged()
            .may_be(&[Unavailable])
            .link(Link::to("listTenants", "Its tenants.").with("cluster", NAME))
            .link(Link::to("renameCluster", "It is renamed.").with("name", NAME).unchanged())
            .link(Link::to("removeCluster", "It goes.").with("name", NAME).unchanged()),
        Route::patch::<ClusterChange, _, _>(
            "/v1/clusters/{name}",
            "renameCluster",
            "Another name for a cluster",
            access::rename_cluster,
        )
        .needs(Needs::OfServer(Role::Admin))
        .part::<Name>("name")
        .json::<Outcome>()
        .may_be(&[Refused, Unavailable])
        .link(Link::to("getCluster", "What it is now.").with("name", SENT_NAME)),
        Route::delete(
            "/v1/clusters/{name}",
            "removeCluster",
            "A cluster goes, with nothing in it",
            access::remove_cluster,
        )
        .needs(Needs::OfServer(Role::Admin))
        .part::<Name>("name")
        .json::<Outcome>()
        .may_be(&[Refused, Unavailable]),
    ]
}

fn tokens() -> Vec<Route> {
    let of_server = |route: Route| route.needs(Needs::OfServer(Role::Admin)).may_be(&[Unavailable]);
    let routes = [
        Route::get(
            "/v1/tokens",
            "listTokens",
            "Tokens: what they are good for, and until when",
            access::tokens,
        )
        .query::<Paging>()
        .json::<Items<TokenView>>()
        .link(Link::next_page("listTokens"))
        .link(Link::to("getToken", "One of them.").with("name", FIRST_NAME)),
        Route::post::<NewToken, _, _>(
            "/v1/tokens",
            "issueToken",
            "Another token; its text is shown once",
            access::issue_token,
        )
        .json::<IssuedToken>()
        .may_be(&[NotFound, Refused])
        .link(Link::to("getToken", "What it is good for.").with("name", SENT_NAME))
        .link(Link::to("revokeToken", "It is good no longer.").with("name", SENT_NAME)),
        Route::get("/v1/tokens/{name}", "getToken", "A token, without its text", access::token)
            .part::<Name>("name")
            .json::<TokenView>()
            .tagged()
            .link(Link::to("getToken", "What it is by then.").with("name", NAME).changed())
            .link(Link::to("revokeToken", "It is good no longer.").with("name", NAME).unchanged()),
        Route::delete("/v1/tokens/{name}", "revokeToken", "A token is good no longer", access::revoke_token)
            .part::<Name>("name")
            .json::<Outcome>()
            .link(Link::to("getToken", "It is gone.").with("name", SAME_NAME)),
    ];
    routes.into_iter().map(of_server).collect()
}

fn settings() -> Vec<Route> {
    vec![
        Route::get("/v1/settings", "getSettings", "How a cluster behaves", behaviour::settings)
            .needs(Needs::OfCluster(Role::Viewer))
            .about(Subject::Work)
            .of_cluster()
            .json::<SettingsView>()
            .tagged()
            .may_be(&[Unavailable])
            .link(Link::to("getSettings", "How it behaves by then.").changed())
            .link(Link::to("changeSettings", "It behaves otherwise.").unchanged()),
        Route::patch::<SettingsChange, _, _>(
            "/v1/settings",
            "changeSettings",
            "A cluster behaves otherwise; what is not said stays",
            behaviour::change_settings,
        )
        .needs(Needs::OfCluster(Role::Admin))
        .about(Subject::Work)
        .of_cluster()
        .json::<Outcome>()
        .may_be(&[Refused, Unavailable])
        .link(Link::to("getSettings", "How it behaves now.")),
        Route::get("/v1/brake", "getBrake", "Whether every start is held", behaviour::brake)
            .needs(Needs::OfCluster(Role::Viewer))
            .about(Subject::Work)
            .of_cluster()
            .json::<BrakeView>()
            .tagged()
            .may_be(&[Unavailable])
            .link(Link::to("setBrake", "They are held, or let go.").unchanged()),
        Route::put::<BrakeView, _, _>(
            "/v1/brake",
            "setBrake",
            "Every start is held, or let go",
            behaviour::change_brake,
        )
        .needs(Needs::OfCluster(Role::Operator))
        .about(Subject::Work)
        .of_cluster()
        .json::<Outcome>()
        .may_be(&[Refused, Unavailable])
        .link(Link::to("getBrake", "Whether they are.")),
    ]
}

fn site_and_policy() -> Vec<Route> {
    vec![
        Route::get("/v1/site", "getSite", "What all machines are told of where they are", behaviour::site)
            .needs(Needs::OfCluster(Role::Viewer))
            .about(Subject::Fleet)
            .of_cluster()
            .json::<Site>()
            .tagged()
            .may_be(&[Unavailable])
            .link(Link::to("changeSite", "They are told otherwise.").unchanged()),
        Route::patch::<SiteChange, _, _>(
            "/v1/site",
            "changeSite",
            "They are told otherwise; what is not said stays",
            behaviour::change_site,
        )
        .needs(Needs::OfCluster(Role::Admin))
        .about(Subject::Fleet)
        .of_cluster()
        .json::<Outcome>()
        .may_be(&[Refused, Unavailable])
        .link(Link::to("getSite", "What they are told now.")),
        Route::get(
            "/v1/tenants/{name}/policy",
            "getPolicy",
            "Which events of a tenant approve themselves",
            behaviour::policy,
        )
        .about(Subject::Fleet)
        .of_cluster()
        .part::<Name>("name")
        .json::<PolicyEntry>()
        .tagged()
        .may_be(&[Unavailable])
        .link(Link::to("setPolicy", "It gets another.").with("name", SAME_NAME).unchanged()),
        Route::put::<PolicyEntry, _, _>(
            "/v1/tenants/{name}/policy",
            "setPolicy",
            "Another policy for a tenant, or for the scale set that it is part of",
            behaviour::change_policy,
        )
        .needs(Needs::OfCluster(Role::Admin))
        .about(Subject::Fleet)
        .of_cluster()
        .part::<Name>("name")
        .json::<Outcome>()
        .may_be(&[Refused, Unavailable])
        .link(Link::to("getPolicy", "What it is now.").with("name", SAME_NAME)),
    ]
}
