# Machines of one update domain may lie in several fault domains; on request, one of these goes at a time.
# promise: R1
host h1 h2 h3 h4
scaleset web
instance of web on h1 ud 0 fd 0
instance of web on h2 ud 0 fd 1
instance of web on h3 ud 0 fd 0
instance of web on h4 ud 0 fd 0
instance of web on h4 ud 0 fd 1
poll all
rollout reboot all with one-fault-domain
at 1m   approve web by web_0
at 1m30s expect web_0 boots 2, web_2 boots 2, web_1 boots 1, web_3 boots 1
at 2m   approve web by web_0
at 2m30s expect web_1 boots 2, web_3 boots 1
# A host with two of them goes alone.
at 3m   approve web by web_0
at 3m30s expect web_3 boots 2, web_4 boots 2, rollout finished
