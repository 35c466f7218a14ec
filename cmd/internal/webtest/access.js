// What can be checked of accessibility by program. Evaluates to a list of complaints about the page as it is now.
(() => {
  const complaints = []
  const complain = (element, words) => complaints.push(`${words}: ${element.outerHTML.slice(0, 160)}`)
  const visible = e => e.checkVisibility({ visibilityProperty: true, opacityProperty: true })
  const all = selector => [...document.querySelectorAll(selector)].filter(visible)

  if (!document.documentElement.lang) complaints.push('the page has no language')
  if (!document.title) complaints.push('the page has no title')
  for (const [selector, n] of [['main', 1], ['h1', 1], ['body > header', 1], ['body > footer', 1]]) {
    if (document.querySelectorAll(selector).length !== n) complaints.push(`not ${n} ${selector}`)
  }
  const ids = [...document.querySelectorAll('[id]')].map(e => e.id)
  for (const id of ids.filter((id, i) => ids.indexOf(id) !== i)) complaints.push(`two elements have the id ${id}`)
  for (const attribute of ['aria-labelledby', 'aria-describedby', 'for', 'aria-controls']) {
    for (const e of document.querySelectorAll(`[${attribute}]`)) {
      for (const id of e.getAttribute(attribute).split(' ')) if (!document.getElementById(id)) complain(e, `${attribute} names ${id}, which is not there`)
    }
  }
  let level = 0
  for (const h of all('h1, h2, h3, h4')) {
    if (+h.tagName[1] > level + 1) complain(h, `a heading after one of level ${level}`)
    level = +h.tagName[1]
  }
  for (const e of document.querySelectorAll('[tabindex]')) if (e.tabIndex > 0) complain(e, 'out of the order of the page')
  for (const nav of all('nav')) if (!nav.ariaLabel) complain(nav, 'a nav without a label')
  if (document.documentElement.scrollWidth > innerWidth) complaints.push(`wider than the window by ${document.documentElement.scrollWidth - innerWidth}px`)

  // Targets: WCAG 2.2, 2.5.8; links within a line may be smaller.
  for (const e of all('button, input, summary')) {
    const { width, height } = e.getBoundingClientRect()
    if (Math.min(width, height) < 24) complain(e, `a target of ${width} × ${height}`)
  }

  // Contrast: WCAG 2.2, 1.4.3 and its definition of relative luminance.
  const colour = text => {
    const [r, g, b, a = 1] = text.match(/[\d.]+/g).map(Number)
    return { r, g, b, a }
  }
  const over = (top, below) => {
    const mix = (x, y) => x * top.a + y * (1 - top.a)
    return { r: mix(top.r, below.r), g: mix(top.g, below.g), b: mix(top.b, below.b), a: 1 }
  }
  const background = e => {
    if (!e) return { r: 255, g: 255, b: 255, a: 1 }
    const own = colour(getComputedStyle(e).backgroundColor)
    return own.a === 1 ? own : over(own, background(e.parentElement))
  }
  const luminance = ({ r, g, b }) => {
    const linear = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4
    return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
  }
  const contrast = (a, b) => {
    const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x)
    return (light + 0.05) / (dark + 0.05)
  }
  for (const e of all('body *')) {
    if (![...e.childNodes].some(n => n.nodeType === Node.TEXT_NODE && n.nodeValue.trim())) continue
    const ratio = contrast(over(colour(getComputedStyle(e).color), background(e)), background(e))
    if (ratio < 4.5) complain(e, `a contrast of ${ratio.toFixed(2)}`)
  }
  // Outlines of controls: WCAG 2.2, 1.4.11. What can't be used needs none.
  for (const e of all('.button:not(.quiet):not([aria-disabled]), input')) {
    const style = getComputedStyle(e)
    const around = background(e.parentElement)
    const ratio = Math.max(contrast(colour(style.borderTopColor), around), contrast(background(e), around))
    if (ratio < 3) complain(e, `an outline with a contrast of ${ratio.toFixed(2)}`)
  }
  return complaints
})()
