"""The page, independent of what the report says: parts of a document, their renderings, and the data of the widgets.

``templates/`` holds its HTML, Markdown, CSS and JavaScript.
"""
