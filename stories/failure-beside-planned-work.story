# A failure may hit a second update domain; planned work then waits, late, until it is over.
# promise: E4
host h1 h2 h3
scaleset web
instance of web on h1 ud 0
instance of web on h2 ud 1
poll web_0
update host h1
at 14m50s fail host h2
expect web Scheduled Started
# The notice is over, but web has another update domain down.
at 15m  expect web Scheduled Started
at 15m20s expect web Started
at 15m29s expect web nothing
