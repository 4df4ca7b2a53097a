# The brake in the middle of a rollout: the announced group is held, and no further group is announced.
# promise: R2
host h1 h2 h3
scaleset web
instance of web on h1 ud 0
instance of web on h2 ud 1
instance of web on h3 ud 2
poll all
rollout reboot all
at 1m   approve web by web_0
at 1m30s expect web Scheduled
at 2m   brake on
at 20m  expect web Scheduled, rollout going
refused force E2
at 1h   brake off
expect web Started
at 1h10s brake on
# The group under way ends; the next is not announced, for its notice would run out for nothing.
at 1h30s expect web nothing, rollout waits-for-brake
at 2h   brake off
expect web Scheduled
at 2h15m30s expect rollout finished
# Nor is the first.
brake on
rollout update h1
expect web nothing, rollout waits-for-brake
brake off
expect web Scheduled
