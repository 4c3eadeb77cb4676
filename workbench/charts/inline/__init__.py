"""From a chart's specification to the SVG that stands in a page.

    fitting     a specification for a width in pixels
    cleaning    a drawn SVG with nothing in it but shapes, texts and links of the page's own server

Both take values and return values, and load no Altair.
"""
