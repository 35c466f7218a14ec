// Texts in the reader's language. Each page has its own dictionaries:
//
//   const { t } = i18n({ en: { left: '{n} unit|{n} units' }, zh: { left: '{n} 件' } })
//
// {n} chooses between the forms for one and for many. In HTML, data-t names the text of an element, data-t-label the
// text of its aria-label.

import { allTabs } from './store.js'

const stored = 'seckill.language'

function detect() {
  const chosen = allTabs.get(stored)
  if (chosen === 'en' || chosen === 'zh') return chosen
  return (navigator.languages ?? [navigator.language]).map(l => l.slice(0, 2)).find(l => l === 'en' || l === 'zh') ?? 'en'
}

export function i18n(dictionaries) {
  const listeners = []
  let lang = detect()

  function t(key, values = {}) {
    const text = dictionaries[lang][key] ?? dictionaries.en[key] ?? key
    const [one, many = one] = text.split('|')
    return (values.n === 1 ? one : many).replace(/\{(\w+)\}/g, (_, name) => {
      const value = values[name]
      return typeof value === 'number' ? value.toLocaleString(locale()) : value
    })
  }

  const locale = () => (lang === 'zh' ? 'zh-CN' : 'en')

  // apply sets all texts of the page, and binds the language button.
  function apply() {
    document.documentElement.lang = locale()
    for (const e of document.querySelectorAll('[data-t]')) e.textContent = t(e.dataset.t)
    for (const e of document.querySelectorAll('[data-t-label]')) e.setAttribute('aria-label', t(e.dataset.tLabel))
    if (dictionaries[lang].pageTitle) document.title = t('pageTitle')
    const other = document.querySelector('[data-language]')
    if (!other) return
    other.textContent = lang === 'zh' ? 'English' : '中文'
    other.lang = lang === 'zh' ? 'en' : 'zh-CN'
    other.onclick = () => {
      lang = lang === 'zh' ? 'en' : 'zh'
      allTabs.set(stored, lang)
      apply()
      for (const listener of listeners) listener()
    }
  }

  apply()
  return {
    t, locale,
    onchange: listener => listeners.push(listener),
  }
}
