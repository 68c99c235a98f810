"""The page: recent samples with their scores, for people (HTML) and programs (JSON), without a build step or a script.

| room | what |
|---|---|
| `app` | the ASGI application, its routes |
| `settings` | what it is told, checked |
| `access` | Host header, token, cookie |
| `overview`, `story` | the two pages |
| `parts`, `scores` | what both are made of |
| `markup`, `style` | HTML that is escaped by construction; the one style sheet and the content policy that names it |
| `api` | the JSON |
| `asgi` | requests and answers; the admin listener uses it too |
| `records`, `texts` | what is kept of a sample |
| `intake` | the store's own thread |
| `welcome`, `words` | the page before the first call; numbers, times and long texts in words |

Nothing is imported here: the store, which the page reads, uses `records`, `texts` and `intake`.
"""
