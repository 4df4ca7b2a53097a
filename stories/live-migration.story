# A live migration is a Freeze: the machine is elsewhere afterwards, and has lost nothing.
# promise: E1, E2
host h1 h2 h3
scaleset web
instance of web on h1 ud 0
instance of web on h2 ud 1
poll web_0
migrate host h1
at 2m   approve web by web_0
at 2m5s expect web nothing
expect web_0 on h3, web_0 boots 1, web_0 disk 1
# A migration that has nowhere to go is refused.
fail host h1
refused migrate host h2 h3
