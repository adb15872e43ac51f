"""The page, whatever the report says: parts of a document, renderings, and packed data of the live parts.

``templates/`` holds its HTML, Markdown, CSS and JavaScript.
"""
