//! Requests to a webhook, and the check of its response to a handshake.

use forewarn_control::Site;
use forewarn_control::push::{
    Push, is_validated, pagerduty, pagerduty_end, plain_text, slack, teams, validation,
};
use forewarn_control::shared::{Authorization, HandshakeMethod, Webhook, WebhookFormat};
use forewarn_http_client::header::{AUTHORIZATION, CONTENT_TYPE};
use forewarn_http_client::{HeaderMap, HeaderName, HeaderValue, HttpResponse, Method, Request};
use forewarn_types::Moment;

use super::transport::{DeliveryError, check};

const CLOUD_EVENTS: HeaderValue = HeaderValue::from_static("application/cloudevents+json; charset=utf-8");
const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

const REQUEST_ORIGIN: HeaderName = HeaderName::from_static("webhook-request-origin");
const ALLOWED_ORIGIN: HeaderName = HeaderName::from_static("webhook-allowed-origin");
const ALLOWED_RATE: HeaderName = HeaderName::from_static("webhook-allowed-rate");

/// Headers of Event Grid.
const GRID_EVENT_TYPE: HeaderName = HeaderName::from_static("aeg-event-type");
const GRID_SUBSCRIPTION: HeaderName = HeaderName::from_static("aeg-subscription-name");
const GRID_DELIVERY_COUNT: HeaderName = HeaderName::from_static("aeg-delivery-count");
const GRID_DATA_VERSION: HeaderName = HeaderName::from_static("aeg-data-version");
const GRID_METADATA_VERSION: HeaderName = HeaderName::from_static("aeg-metadata-version");
const VALIDATION: HeaderValue = HeaderValue::from_static("SubscriptionValidation");
const NOTIFICATION: HeaderValue = HeaderValue::from_static("Notification");
const ONE: HeaderValue = HeaderValue::from_static("1");

/// The context of a request that delivers events.
#[derive(Clone, Copy)]
pub(super) struct DeliveryAttempt<'a> {
    /// Name by which the receiver knows this server.
    pub(super) origin: &'a HeaderValue,
    /// Number of the attempt.
    pub(super) tries: u32,
    /// Time of the server's clock.
    pub(super) now: Moment,
}

/// The request that delivers events: one, or as many as the format allows.
pub(super) fn notification(webhook: &Webhook, attempt: DeliveryAttempt<'_>, pushes: &[Push]) -> Request {
    let mut headers = headers(webhook);
    let DeliveryAttempt { origin, tries, now } = attempt;
    let one = |body: &dyn Fn(&Push) -> String| pushes.first().map(body).unwrap_or_default();
    let (content_type, body) = match webhook.format {
        WebhookFormat::CloudEvents => {
            headers.insert(REQUEST_ORIGIN, origin.clone());
            (CLOUD_EVENTS, one(&Push::cloud_event))
        }
        WebhookFormat::EventGrid => {
            headers.insert(GRID_EVENT_TYPE, NOTIFICATION);
            headers.insert(GRID_DELIVERY_COUNT, HeaderValue::from(tries));
            headers.insert(GRID_DATA_VERSION, ONE);
            headers.insert(GRID_METADATA_VERSION, ONE);
            (JSON, one(&Push::event_grid))
        }
        WebhookFormat::Slack => (JSON, slack(pushes, now)),
        WebhookFormat::Teams => (JSON, teams(pushes, now)),
        WebhookFormat::PagerDuty => (JSON, one(&|push| pagerduty(push, routing_key(webhook), now))),
        WebhookFormat::Text => (TEXT, plain_text(pushes, now)),
    };
    headers.insert(CONTENT_TYPE, content_type);
    Request { headers, ..Request::post(webhook.url.target(), body) }
}

/// The request after a test, for formats in which a message has lasting effects.
pub(super) fn end_of_test(webhook: &Webhook, push: &Push) -> Option<Request> {
    match webhook.format {
        WebhookFormat::PagerDuty => {
            let mut headers = headers(webhook);
            headers.insert(CONTENT_TYPE, JSON);
            let body = pagerduty_end(push, routing_key(webhook));
            Some(Request { headers, ..Request::post(webhook.url.target(), body) })
        }
        WebhookFormat::CloudEvents
        | WebhookFormat::EventGrid
        | WebhookFormat::Slack
        | WebhookFormat::Teams
        | WebhookFormat::Text => None,
    }
}

/// The routing key of a webhook of PagerDuty, which has one.
fn routing_key(webhook: &Webhook) -> &str {
    webhook.authorization.as_ref().map_or("", Authorization::reveal)
}

/// The handshake request. With the schema of Event Grid, the receiver has to return `code`.
pub(super) fn handshake_request(
    (webhook, method): (&Webhook, HandshakeMethod),
    origin: &HeaderValue,
    code: &str,
    (at, site): (Moment, &Site),
) -> Request {
    let (mut headers, target) = (headers(webhook), webhook.url.target());
    match method {
        HandshakeMethod::Options => {
            headers.insert(REQUEST_ORIGIN, origin.clone());
            Request { headers, ..Request::new(Method::OPTIONS, target, "") }
        }
        HandshakeMethod::ValidationEvent => {
            headers.insert(CONTENT_TYPE, JSON);
            headers.insert(GRID_EVENT_TYPE, VALIDATION);
            Request { headers, ..Request::post(target, validation(code, at, site)) }
        }
    }
}

/// Checks that a response confirms the subscription. Returns the rate limit per minute.
pub(super) fn check_handshake(
    method: HandshakeMethod,
    response: &HttpResponse,
    origin: &HeaderValue,
    code: &str,
) -> Result<Option<u32>, DeliveryError> {
    match method {
        // The status proves nothing: any HTTP server may answer OPTIONS.
        HandshakeMethod::Options => {
            let allowed = response.headers.get(ALLOWED_ORIGIN).map(HeaderValue::as_bytes);
            match allowed {
                Some(allowed) if allowed == b"*" || allowed.eq_ignore_ascii_case(origin.as_bytes()) => {
                    Ok(rate(&response.headers))
                }
                Some(_) => Err(DeliveryError::Unconfirmed("WebHook-Allowed-Origin names another origin")),
                None => {
                    // A 5xx status is the better explanation.
                    if response.status >= 500 {
                        check(response)?;
                    }
                    Err(DeliveryError::Unconfirmed("response to OPTIONS has no WebHook-Allowed-Origin"))
                }
            }
        }
        HandshakeMethod::ValidationEvent => {
            check(response)?;
            if response.status == 200 && is_validated(&response.body, code) {
                return Ok(None);
            }
            Err(DeliveryError::Unconfirmed("response has no validationResponse with the code that was sent"))
        }
    }
}

/// Rate limit per minute.
fn rate(headers: &HeaderMap) -> Option<u32> {
    let text = headers.get(ALLOWED_RATE)?.to_str().ok()?;
    text.trim().parse().ok().filter(|rate| *rate > 0)
}

fn headers(webhook: &Webhook) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let secret = webhook.authorization.as_ref().map(|secret| HeaderValue::from_str(secret.reveal()));
    // The secret of PagerDuty is in the body.
    if webhook.format != WebhookFormat::PagerDuty
        && let Some(Ok(mut secret)) = secret
    {
        secret.set_sensitive(true);
        headers.insert(AUTHORIZATION, secret);
    }
    if webhook.format == WebhookFormat::EventGrid
        && let Ok(name) = HeaderValue::from_str(webhook.name.as_str())
    {
        headers.insert(GRID_SUBSCRIPTION, name);
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;
    use forewarn_http_client::Bytes;

    fn response(status: u16, headers: &[(&str, &str)], body: &str) -> HttpResponse {
        let pairs = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        HttpResponse { status, headers: pairs.collect::<HeaderMap>(), body: Bytes::from(body.to_owned()) }
    }

    /// promise: W1
    #[test]
    fn a_webhook_agrees_to_cloud_events_by_its_headers() {
        let origin = HeaderValue::from_static("forewarn.example");
        let outcome = |status, headers: &[(&str, &str)]| {
            check_handshake(HandshakeMethod::Options, &response(status, headers, ""), &origin, "c")
                .map_err(|no| no.to_string())
        };
        assert_eq!(outcome(200, &[("webhook-allowed-origin", "*")]), Ok(None));
        assert_eq!(
            outcome(405, &[("webhook-allowed-origin", "Forewarn.example")]),
            Ok(None),
            "no status counts"
        );
        let rate = |rate| outcome(200, &[("webhook-allowed-origin", "*"), ("webhook-allowed-rate", rate)]);
        assert_eq!(
            [rate("120"), rate("*"), rate("0"), rate("x")],
            [Ok(Some(120)), Ok(None), Ok(None), Ok(None)]
        );
        let other = outcome(200, &[("webhook-allowed-origin", "other.example")]).unwrap_err();
        assert!(other.ends_with("WebHook-Allowed-Origin names another origin"), "{other}");
        let none = outcome(200, &[("allow", "POST")]).unwrap_err();
        assert!(none.ends_with("has no WebHook-Allowed-Origin"), "{none}");
        assert_eq!(outcome(503, &[]), Err("receiver answered 503".to_owned()));
    }

    /// promise: W1
    #[test]
    fn a_webhook_agrees_to_event_grid_by_its_body() {
        let outcome = |status, body: &str| {
            let origin = HeaderValue::from_static("x");
            check_handshake(HandshakeMethod::ValidationEvent, &response(status, &[], body), &origin, "c0de")
                .map_err(|no| no.to_string())
        };
        assert_eq!(outcome(200, r#"{"validationResponse":"c0de"}"#), Ok(None));
        assert!(outcome(202, r#"{"validationResponse":"c0de"}"#).is_err(), "only 200 counts");
        assert!(
            outcome(200, r#"{"validationResponse":"other"}"#).unwrap_err().contains("no validationResponse")
        );
        assert_eq!(outcome(500, r#"{"validationResponse":"c0de"}"#), Err("receiver answered 500".to_owned()));
    }
}
