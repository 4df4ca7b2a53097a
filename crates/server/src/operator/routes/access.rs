//! Routes of clusters, tokens, settings, the brake, the site and policies.

use forewarn_control::schema::Name;
use forewarn_control::shared::Role;
use forewarn_control::{
    BrakeView, ClusterChange, ClusterView, IssuedToken, Items, NewCluster, NewToken, Outcome, PolicyEntry,
    SettingsChange, SettingsView, Site, SiteChange, TokenView,
};
use serde_json::json;

use super::super::page::Paging;
use super::super::problem::ProblemKind::{NotFound, Refused, Unavailable};
use super::super::required_permit::RequiredPermit;
use super::super::route::{Link, Route, RouteTag};
use super::super::{access, settings};

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
            "List clusters with their size and brake",
            access::clusters,
        )
        .query::<Paging>()
        .json::<Items<ClusterView>>()
        .may_fail_with(&[Unavailable])
        .link(Link::next_page("listClusters"))
        .link(Link::to("getCluster", "One item of the list.").with("name", FIRST_NAME))
        .link(Link::to("listHosts", "Hosts of the first cluster.").with("cluster", FIRST_NAME))
        .link(Link::to("getSettings", "Settings of the first cluster.").with("cluster", FIRST_NAME))
        .link(Link::to("renameCluster", "Rename the first cluster.").with("name", FIRST_NAME)),
        Route::post::<NewCluster, _, _>(
            "/v1/clusters",
            "createCluster",
            "Create a cluster",
            access::create_cluster,
        )
        .requires(RequiredPermit::Server(Role::Admin))
        .json::<Outcome>()
        .may_fail_with(&[Refused, Unavailable])
        .link(Link::to("getCluster", "Get the new cluster.").with("name", SENT_NAME))
        .link(Link::to("sendCommand", "Add a host.").with("cluster", SENT_NAME).sending(host))
        .link(Link::to("createScaleSet", "Create a scale set.").with("cluster", SENT_NAME))
        .link(Link::to("applyFleet", "Apply a fleet.").with("cluster", SENT_NAME))
        .link(Link::to("setBrake", "Set its brake.").with("cluster", SENT_NAME))
        .link(Link::to("changeSite", "Set its site.").with("cluster", SENT_NAME))
        .link(Link::to("renameCluster", "Rename it.").with("name", SENT_NAME))
        .link(Link::to("removeCluster", "Remove it.").with("name", SENT_NAME)),
        Route::get("/v1/clusters/{name}", "getCluster", "Get a cluster", access::cluster)
            .path_parameter::<Name>("name")
            .json::<ClusterView>()
            .tagged()
            .may_fail_with(&[Unavailable])
            .link(Link::to("listTenants", "Its tenants.").with("cluster", NAME))
            .link(Link::to("renameCluster", "Rename it.").with("name", NAME).unchanged())
            .link(Link::to("removeCluster", "Remove it.").with("name", NAME).unchanged()),
        Route::patch::<ClusterChange, _, _>(
            "/v1/clusters/{name}",
            "renameCluster",
            "Rename a cluster",
            access::rename_cluster,
        )
        .requires(RequiredPermit::Server(Role::Admin))
        .path_parameter::<Name>("name")
        .json::<Outcome>()
        .may_fail_with(&[Refused, Unavailable])
        .link(Link::to("getCluster", "Get the new state.").with("name", SENT_NAME)),
        Route::delete(
            "/v1/clusters/{name}",
            "removeCluster",
            "Remove an empty cluster",
            access::remove_cluster,
        )
        .requires(RequiredPermit::Server(Role::Admin))
        .path_parameter::<Name>("name")
        .json::<Outcome>()
        .may_fail_with(&[Refused, Unavailable]),
    ]
}

fn tokens() -> Vec<Route> {
    let of_server =
        |route: Route| route.requires(RequiredPermit::Server(Role::Admin)).may_fail_with(&[Unavailable]);
    let routes = [
        Route::get("/v1/tokens", "listTokens", "List tokens with role, scope and expiry", access::tokens)
            .query::<Paging>()
            .json::<Items<TokenView>>()
            .link(Link::next_page("listTokens"))
            .link(Link::to("getToken", "One item of the list.").with("name", FIRST_NAME)),
        Route::post::<NewToken, _, _>(
            "/v1/tokens",
            "issueToken",
            "Issue a token; the response is the only one with its text",
            access::issue_token,
        )
        .json::<IssuedToken>()
        .may_fail_with(&[NotFound, Refused])
        .link(Link::to("getToken", "Role and scope of the token.").with("name", SENT_NAME))
        .link(Link::to("revokeToken", "Revoke it.").with("name", SENT_NAME)),
        Route::get("/v1/tokens/{name}", "getToken", "Get a token, without its text", access::token)
            .path_parameter::<Name>("name")
            .json::<TokenView>()
            .tagged()
            .link(Link::to("getToken", "Get it if it has changed.").with("name", NAME).changed())
            .link(Link::to("revokeToken", "Revoke it.").with("name", NAME).unchanged()),
        Route::delete("/v1/tokens/{name}", "revokeToken", "Revoke a token", access::revoke_token)
            .path_parameter::<Name>("name")
            .json::<Outcome>()
            .link(Link::to("getToken", "No longer found.").with("name", SAME_NAME)),
    ];
    routes.into_iter().map(of_server).collect()
}

fn settings() -> Vec<Route> {
    vec![
        Route::get("/v1/settings", "getSettings", "Get the settings of a cluster", settings::settings)
            .requires(RequiredPermit::Cluster(Role::Viewer))
            .tag(RouteTag::Work)
            .of_cluster()
            .json::<SettingsView>()
            .tagged()
            .may_fail_with(&[Unavailable])
            .link(Link::to("getSettings", "Get the settings if they have changed.").changed())
            .link(Link::to("changeSettings", "Change the settings.").unchanged()),
        Route::patch::<SettingsChange, _, _>(
            "/v1/settings",
            "changeSettings",
            "Change settings of a cluster; omitted members keep their value",
            settings::change_settings,
        )
        .requires(RequiredPermit::Cluster(Role::Admin))
        .tag(RouteTag::Work)
        .of_cluster()
        .json::<Outcome>()
        .may_fail_with(&[Refused, Unavailable])
        .link(Link::to("getSettings", "Get the new settings.")),
        Route::get("/v1/brake", "getBrake", "Get the brake", settings::brake)
            .requires(RequiredPermit::Cluster(Role::Viewer))
            .tag(RouteTag::Work)
            .of_cluster()
            .json::<BrakeView>()
            .tagged()
            .may_fail_with(&[Unavailable])
            .link(Link::to("setBrake", "Set the brake.").unchanged()),
        Route::put::<BrakeView, _, _>(
            "/v1/brake",
            "setBrake",
            "Set or release the brake, which holds every start",
            settings::change_brake,
        )
        .requires(RequiredPermit::Cluster(Role::Operator))
        .tag(RouteTag::Work)
        .of_cluster()
        .json::<Outcome>()
        .may_fail_with(&[Refused, Unavailable])
        .link(Link::to("getBrake", "Get the brake.")),
    ]
}

fn site_and_policy() -> Vec<Route> {
    vec![
        Route::get(
            "/v1/site",
            "getSite",
            "Get the site: location, subscription and resource group of all machines",
            settings::site,
        )
        .requires(RequiredPermit::Cluster(Role::Viewer))
        .tag(RouteTag::Fleet)
        .of_cluster()
        .json::<Site>()
        .tagged()
        .may_fail_with(&[Unavailable])
        .link(Link::to("changeSite", "Change the site.").unchanged()),
        Route::patch::<SiteChange, _, _>(
            "/v1/site",
            "changeSite",
            "Change the site; omitted members keep their value",
            settings::change_site,
        )
        .requires(RequiredPermit::Cluster(Role::Admin))
        .tag(RouteTag::Fleet)
        .of_cluster()
        .json::<Outcome>()
        .may_fail_with(&[Refused, Unavailable])
        .link(Link::to("getSite", "Get the new site.")),
        Route::get(
            "/v1/tenants/{name}/policy",
            "getPolicy",
            "Get the approval policy of a tenant: events that approve themselves",
            settings::policy,
        )
        .tag(RouteTag::Fleet)
        .of_cluster()
        .path_parameter::<Name>("name")
        .json::<PolicyEntry>()
        .tagged()
        .may_fail_with(&[Unavailable])
        .link(Link::to("setPolicy", "Set the policy.").with("name", SAME_NAME).unchanged()),
        Route::put::<PolicyEntry, _, _>(
            "/v1/tenants/{name}/policy",
            "setPolicy",
            "Set the approval policy of a tenant, or of its scale set",
            settings::change_policy,
        )
        .requires(RequiredPermit::Cluster(Role::Admin))
        .tag(RouteTag::Fleet)
        .of_cluster()
        .path_parameter::<Name>("name")
        .json::<Outcome>()
        .may_fail_with(&[Refused, Unavailable])
        .link(Link::to("getPolicy", "Get the new state.").with("name", SAME_NAME)),
    ]
}
