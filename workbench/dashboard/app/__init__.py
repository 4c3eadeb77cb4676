"""The dashboard's server, a process of its own.

- `server`: composes the rest and listens
- `sessions`: the sessions of signed-in users
- `sign_in`: the pages to sign in and out
- `opened`: how many pages a user has open
- `throttle`: how often somebody may try to sign in
- `headers`: the security headers of every response
- `downloads`: records, packets, and notebooks as files
- `warming`: what the first reader would otherwise wait for
- `libraries`: everything that depends on private parts of Panel and Bokeh, whose versions are pinned
- `assets`: the style sheet and the script, served as they are
- `templates`: the frame of every page, and the pages outside of Panel
"""
