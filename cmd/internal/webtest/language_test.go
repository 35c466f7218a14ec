package webtest

import "testing"

func TestLanguage_Detected(t *testing.T) {
	s := openShop(t)
	ticket, _ := s.sell(offer{title: "双人晚餐"})
	for _, c := range []struct{ wants, lang, title, button string }{
		{"zh-CN,zh;q=0.9,en;q=0.8", "zh-CN", "限时秒杀 · Seckill", "立即抢购"},
		{"en-GB,en", "en", "Flash sale · Seckill", "Buy now"},
		{"fr-FR,fr", "en", "Flash sale · Seckill", "Buy now"},
		{"fr-FR,zh-TW", "zh-CN", "限时秒杀 · Seckill", "立即抢购"},
	} {
		p := open(t, s.url, look{language: c.wants})
		p.until(in("open", ticket) + " && " + shows(ticket, c.button))
		if lang, title := value[string](p, "document.documentElement.lang"), value[string](p, "document.title"); lang != c.lang || title != c.title {
			t.Errorf("%s: the page is in %q, its title %q", c.wants, lang, title)
		}
	}
}

// The switch changes everything at once, and is remembered.
func TestLanguage_Switch(t *testing.T) {
	s := openShop(t)
	ticket, _ := s.sell(offer{title: "双人晚餐"})
	p := bought(t, s, ticket, look{language: "en"})
	p.click("[data-language]")
	p.until("document.documentElement.lang === 'zh-CN' && " + shows(ticket, "已抢到") + " && " + shows(firstOrder, "待付款"))
	foreign := value[[]string](p, `[...document.querySelectorAll('body *')].filter(e => e.checkVisibility() && e.children.length === 0)
	  .map(e => e.textContent).filter(words => /[A-Za-z]{2,}/.test(words) && !['English', 'API'].includes(words))`)
	if len(foreign) > 0 {
		t.Errorf("not in Chinese: %q", foreign)
	}
	p.visit(s.url)
	p.until(shows(ticket, "已抢到") + " && document.documentElement.lang === 'zh-CN'")
	p.click("[data-language]")
	p.until("document.documentElement.lang === 'en' && " + shows(ticket, "Yours"))
}

// Both languages have every text, with the same values in it.
func TestLanguage_DictionariesAgree(t *testing.T) {
	p := open(t, openShop(t).url, look{})
	differences := value[[]string](p, `import(new URL('messages.js', document.querySelector('script[src]').src)).then(({ messages: { en, zh } }) =>
	  [...new Set([...Object.keys(en), ...Object.keys(zh)])].filter(key => {
	    const values = text => text && [...new Set(text.match(/\{\w+\}/g))].sort().join()
	    return !en[key] || !zh[key] || values(en[key]) !== values(zh[key])
	  }))`)
	if len(differences) > 0 {
		t.Errorf("these texts differ: %q", differences)
	}
}
