// The texts of the board. Keys that begin with "e:" are kinds of events.

export const texts = {
  en: {
    pageTitle: 'Live board · Seckill', skip: 'Skip to the board', brand: 'Live board', health: 'Health', pages: 'Pages',
    needToken: 'This board is for admins. Paste an admin’s token.', watch: 'Watch',
    timeline: 'What happened', events: 'Events', instances: 'Instances', vouchers: 'Vouchers', all: 'All figures as a table',
    live: 'live', lost: 'connecting …', full: 'too many viewers', token: 'token needed', off: 'no board here',
    left: 'of {n} left', nothing: 'Nothing is on sale', now: 'now', ago: '−{s} s',
    coming: 'coming', 'on-sale': 'on sale', 'sold-out': 'sold out', ended: 'ended',
    orders: 'orders', orderRate: 'orders/s', askRate: 'requests/s', p99: 'p99',
    cStock: 'Stock and orders', cAnswers: 'Answers a second', cTime: 'Time to place an order', cLocks: 'Locks a second',
    cQueue: 'Batches and queue', cOutbox: 'Outbox',
    stock: 'left', sold: 'orders', placed: 'placed', replayed: 'found again', sold_out: 'sold out', already_ordered: 'already ordered',
    in_progress: 'in progress', outside: 'not open', failed: 'failed',
    granted: 'granted', held: 'held', bypassed: 'bypassed', lockLost: 'lost', batch: 'orders a batch', queue: 'waiting', outbox: 'to be sent', oldest: 'oldest',
    lock: 'lock', broker: 'broker', database: 'database', ids: 'ids', ok: 'ok', away: 'away', backup: 'backup worker', bypass: 'bypassed',
    instance: 'instance', worker: 'worker', ahead: 'ms ahead', state: 'state', here: 'this one', serving: 'serving', gone: 'lost',
    title: 'voucher', total: 'units', many: '{n} instances, {name} speaks',
    'e:started': 'started', 'e:draining': 'shutting down', 'e:sale-opened': 'sale opened: {what}', 'e:sold-out': 'sold out: {what}',
    'e:on-sale-again': 'on sale again: {what}', 'e:sale-ended': 'sale ended: {what}',
    'e:lock-breaker-opened': 'lock away: breaker opened', 'e:lock-breaker-closed': 'lock back: breaker closed', 'e:locks-lost': 'locks were lost',
    'e:queue-full': 'queue full', 'e:outcomes-unknown': 'outcomes unknown', 'e:relay-paused': 'broker away: relay paused',
    'e:relay-resumed': 'broker back', 'e:event-given-up': 'events given up: {what}', 'e:database-away': 'database away', 'e:database-back': 'database back',
    'e:ids-away': 'store of ids away', 'e:ids-back': 'store of ids back', 'e:lease-acquired': 'worker id {what} leased', 'e:lease-lost': 'worker id lost',
    'e:clock-back': 'clock went back by {what} ms', 'e:worker-switched': 'backup worker {what} in use',
    'e:instance-came': '{what} came', 'e:instance-went': '{what} went', 'e:instance-lost': '{what} is lost', 'e:mark': '{what}',
  },
  zh: {
    pageTitle: '实时看板 · 秒杀', skip: '跳到看板', brand: '实时看板', health: '健康状态', pages: '页面',
    needToken: '此看板仅限管理员，请粘贴管理员令牌。', watch: '查看',
    timeline: '发生了什么', events: '事件', instances: '实例', vouchers: '优惠券', all: '全部数据（表格）',
    live: '实时', lost: '连接中…', full: '观看人数已满', token: '需要令牌', off: '没有看板',
    left: '剩余，共 {n} 件', nothing: '暂无秒杀', now: '现在', ago: '−{s} 秒',
    coming: '即将开始', 'on-sale': '秒杀中', 'sold-out': '已售罄', ended: '已结束',
    orders: '订单', orderRate: '订单/秒', askRate: '请求/秒', p99: 'p99',
    cStock: '库存与订单', cAnswers: '每秒应答', cTime: '下单耗时', cLocks: '每秒加锁', cQueue: '批次与排队', cOutbox: '发件箱',
    stock: '剩余', sold: '订单', placed: '下单成功', replayed: '重复请求', sold_out: '售罄', already_ordered: '已下过单',
    in_progress: '处理中', outside: '未开放', failed: '失败',
    granted: '获得', held: '被占用', bypassed: '绕过', lockLost: '丢失', batch: '每批订单', queue: '排队', outbox: '待发送', oldest: '最早',
    lock: '锁', broker: '消息队列', database: '数据库', ids: 'ID', ok: '正常', away: '失联', backup: '备用 worker', bypass: '已绕过',
    instance: '实例', worker: 'worker', ahead: '超前 ms', state: '状态', here: '本实例', serving: '服务中', gone: '失联',
    title: '优惠券', total: '总量', many: '{n} 个实例，数据来自 {name}',
    'e:started': '已启动', 'e:draining': '正在关闭', 'e:sale-opened': '开抢：{what}', 'e:sold-out': '售罄：{what}',
    'e:on-sale-again': '重新开售：{what}', 'e:sale-ended': '结束：{what}',
    'e:lock-breaker-opened': '锁失联：熔断打开', 'e:lock-breaker-closed': '锁恢复：熔断关闭', 'e:locks-lost': '锁丢失',
    'e:queue-full': '队列已满', 'e:outcomes-unknown': '结果不明', 'e:relay-paused': '消息队列失联：中继暂停',
    'e:relay-resumed': '消息队列恢复', 'e:event-given-up': '累计放弃事件：{what}', 'e:database-away': '数据库失联', 'e:database-back': '数据库恢复',
    'e:ids-away': 'ID 存储失联', 'e:ids-back': 'ID 存储恢复', 'e:lease-acquired': '租得 worker {what}', 'e:lease-lost': 'worker 丢失',
    'e:clock-back': '时钟回拨 {what} 毫秒', 'e:worker-switched': '启用备用 worker {what}',
    'e:instance-came': '{what} 上线', 'e:instance-went': '{what} 下线', 'e:instance-lost': '{what} 失联', 'e:mark': '{what}',
  },
}

const good = ['sale-opened', 'on-sale-again', 'lock-breaker-closed', 'relay-resumed', 'database-back', 'ids-back', 'instance-came']
const bad = ['lock-breaker-opened', 'locks-lost', 'relay-paused', 'event-given-up', 'database-away', 'ids-away', 'lease-lost', 'instance-lost', 'outcomes-unknown', 'queue-full']
const notable = ['sold-out', 'clock-back', 'worker-switched', 'instance-went', 'draining']

// eventColour returns the colour of a kind of event.
export function eventColour(kind) {
  if (good.includes(kind)) return 'good'
  if (bad.includes(kind)) return 'accent'
  return notable.includes(kind) ? 'warn' : kind === 'mark' ? 'violet' : 'blue'
}
