"""From a chart's specification to the SVG that stands in a page.

    addresses   where its links may lead
    fitting     a specification for a width in pixels
    cleaning    a drawn SVG with nothing in it but shapes, texts and links of the page's own server
    plans       the whole: what a drawing is made from, and the drawing
    renderers   processes that draw

All take values and return values, and load no Altair.
"""
