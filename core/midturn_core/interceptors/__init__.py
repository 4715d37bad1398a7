"""Code of one's own before and after each tool: what a call may become, and what is said of it.

``interceptor`` is the contract for authors, ``stage`` runs the chain, ``threads`` the functions of
it that block.
"""
