// Helpers for elements. They change only what differs, so that focus, selections and screen readers are not disturbed.

export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) attr(element, name, value)
  element.append(...children)
  return element
}

export function text(element, value) {
  if (element.textContent !== value) element.textContent = value
}

export function attr(element, name, value) {
  if (value === undefined || value === false) element.removeAttribute(name)
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value)
}

export const byId = id => document.getElementById(id)

// announcer returns a function that announces a text to screen readers through a live region. Texts of the same moment
// become one announcement; a repeated text is announced again. clear removes the announcement.
export function announcer(region) {
  let texts = []
  const announce = text => {
    if (texts.push(text) > 1) return
    region.textContent = ''
    setTimeout(() => {
      region.textContent = texts.join(' ')
      texts = []
    }, 150)
  }
  announce.clear = () => {
    texts = []
    region.textContent = ''
  }
  return announce
}
