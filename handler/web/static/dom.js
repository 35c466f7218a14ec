// Elements, and changes that touch only what differs, so that focus, selections and screen readers are left alone.

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

// announcer returns what tells screen readers something, in their own time: what is said at once is one message, and the
// same words again are another one. Its clear takes back what was said.
export function announcer(region) {
  let words = []
  const say = text => {
    if (words.push(text) > 1) return
    region.textContent = ''
    setTimeout(() => {
      region.textContent = words.join(' ')
      words = []
    }, 150)
  }
  say.clear = () => {
    words = []
    region.textContent = ''
  }
  return say
}
