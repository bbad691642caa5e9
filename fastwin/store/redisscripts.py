"""What runs inside Redis: a block of panes of one key set as one atomic step, and the meta moved forward."""

__all__ = ["ADVANCE", "FOREIGN", "NEW_EPOCH", "OVERFLOW", "WRITE"]

FOREIGN = "FASTWIN_FOREIGN"
OVERFLOW = "FASTWIN_OVERFLOW"

NEW_EPOCH = """
local epoch = math.max(tonumber(ARGV[1]), tonumber(redis.call('HGET', KEYS[1], 'epoch') or '0') + 1)
redis.call('HSET', KEYS[1], 'epoch', string.format('%.0f', epoch))
return string.format('%.0f', epoch)
"""
"""KEYS: meta. ARGV: the clock, ms. Returns the next epoch."""

ADVANCE = """
local meta = KEYS[1]
local watermark, first, floor, complete, stamp = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local function number(name) return tonumber(redis.call('HGET', meta, name) or '') end
local info = ARGV[12] == '' and '' or redis.pcall('INFO', 'server')  -- a table where it may not be asked
if ARGV[12] ~= '' and type(info) == 'string' and info:match('run_id:(%w+)') ~= ARGV[12] then return 'other' end
if ARGV[11] ~= '' and redis.call('HGET', meta, 'identity') ~= ARGV[11] then return 'other' end
if ARGV[8] ~= '' then redis.call('HSET', KEYS[2], ARGV[8], ARGV[9]) end
redis.call('HSETNX', meta, 'identity', ARGV[6])
local history = redis.call('HGET', meta, 'history') or ''
if history:sub(-#stamp) ~= stamp then  -- else the same step once more, whose answer was lost
  history = history == '' and stamp or history .. ' ' .. stamp
  redis.call('HSET', meta, 'history', history:sub(-ARGV[7] * (#stamp + 1) + 1))
  redis.call('HINCRBY', meta, 'version', 1)
end
local known = number('watermark')
if watermark ~= '' and not (known and known >= tonumber(watermark)) then
  redis.call('HSET', meta, 'watermark', watermark)
end
local from = number('complete_from')
if complete ~= '' and not (from and from >= tonumber(complete)) then
  redis.call('HSET', meta, 'complete_from', complete)
end
redis.call('HSET', meta, 'lost', ARGV[10])
local since = redis.call('HGET', meta, 'since')
if first ~= '' and not (since and tonumber(since) <= tonumber(first)) then since = first end
local dropped = false
if since and floor ~= '' and tonumber(since) < tonumber(floor) then dropped = since; since = floor end
if since then redis.call('HSET', meta, 'since', since) end
local reached, dies = redis.call('HGET', meta, 'watermark'), tonumber(ARGV[14])
if not reached or not dies then return dropped end
local clock = redis.call('HGET', meta, 'clock') or ''
local last = tonumber(clock:match('(%d+):%S+$') or '')
if not last or dies >= last + tonumber(ARGV[15]) or dies < last then
  clock = (clock == '' and '' or clock .. ' ') .. ARGV[14] .. ':' .. reached
  if select(2, clock:gsub('%S+', '')) > tonumber(ARGV[13]) then clock = clock:gsub('^%S+ ', '') end
  redis.call('HSET', meta, 'clock', clock)
end
return dropped
"""
"""KEYS: meta; marks of queries. ARGV: watermark, start of the first pane, floor, end of a loss: ms or ''; stamp;
identity of a new store; how many stamps are kept; a query's name or '', and its batch; '1' for a loss whose end is not
known, or ''; the identity and the process that must be there, or ''; how many entries of the clock are kept; until when
what is written now is there, and how much later an entry is one of its own: ms or ''. Returns from where panes fall
out, or nil; 'other' if identity or process are not those."""

WRITE = (
    """
-- KEYS: revisions; each pane's fields; the coarse pane's fields, if there is a coarse level
-- ARGV: panes, fields, coarse (0 or 1), time to live, epoch, batch; each field's merge;
--       then for each new pane its place among KEYS from 0, its name, and its cells ('' for null)
local panes, fields, coarse, ttl = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == '1', ARGV[4]
local epoch, batch = tonumber(ARGV[5]), tonumber(ARGV[6])

local function key_of(pane, field) return KEYS[1 + pane * fields + field] end
local function merge_of(field) return ARGV[6 + field] end

local function foreign(key, merge)
  local kind = redis.call('TYPE', key).ok
  if kind == 'none' then return false end
  if kind ~= 'string' then return true end
  if merge == 'union' then return redis.call('GETRANGE', key, 0, 3) ~= 'HYLL' end
  local text = redis.call('GETRANGE', key, 0, 63)
  return not (text:match('^[-+%.%deE]+$') or text:match('^-?inf$') or text == 'nan')
end

-- Nothing is written until all keys are known to be ours.
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'none' and kind ~= 'hash' then return redis.error_reply('"""
    + FOREIGN
    + """ ' .. KEYS[1]) end
local new = {}
local stored, outdated = 0, 0
for at = 7 + fields, #ARGV, 2 + fields do
  local pane, name = tonumber(ARGV[at]), ARGV[at + 1]
  local revision = redis.call('HGET', KEYS[1], name)
  local newer = false
  if revision then
    local e, b = revision:match('^(%d+)%.(%d+)$')
    newer = tonumber(e) > epoch or (tonumber(e) == epoch and tonumber(b) > batch)
  end
  if newer then outdated = outdated + 1 else
    for field = 1, fields do
      if foreign(key_of(pane, field), merge_of(field)) then return redis.error_reply('"""
    + FOREIGN
    + """ ' .. key_of(pane, field)) end
    end
    new[#new + 1] = at
  end
end
if #new == 0 then return {stored, outdated} end
if coarse then
  for field = 1, fields do
    if foreign(key_of(panes, field), merge_of(field)) then return redis.error_reply('"""
    + FOREIGN
    + """ ' .. key_of(panes, field)) end
  end
end

for _, at in ipairs(new) do
  local pane = tonumber(ARGV[at])
  for field = 1, fields do
    local cell = ARGV[at + 1 + field]
    if cell == '' then redis.call('DEL', key_of(pane, field)) else
      redis.call('SET', key_of(pane, field), cell, 'PX', ttl)
    end
  end
  redis.call('HSET', KEYS[1], ARGV[at + 1], ARGV[5] .. '.' .. ARGV[6])
  stored = stored + 1
end
redis.call('PEXPIRE', KEYS[1], ttl)
if not coarse then return {stored, outdated} end

-- Decimal ints as text: Lua's numbers are doubles.
local function less(a, b)
  local negative = a:sub(1, 1) == '-'
  if negative ~= (b:sub(1, 1) == '-') then return negative end
  if #a ~= #b then return (#a < #b) ~= negative end
  if negative then return a > b end
  return a < b
end

local function float_less(a, b)  -- NaN is above all others
  if a == 'nan' then return false end
  if b == 'nan' then return true end
  return tonumber(a) < tonumber(b)
end

local function extreme(values, before)
  local best = values[1]
  for i = 2, #values do if before(values[i], best) then best = values[i] end end
  return best
end

local function float_sum(values)  -- with the rounding error carried along (Neumaier)
  local sum, rest = 0, 0
  for _, value in ipairs(values) do
    local x = value == 'nan' and 0/0 or tonumber(value)
    local total = sum + x
    if math.abs(sum) >= math.abs(x) then rest = rest + ((sum - total) + x) else rest = rest + ((x - total) + sum) end
    sum = total
  end
  if rest == rest then sum = sum + rest end
  if sum ~= sum then return 'nan' end
  return string.format('%.17g', sum)
end

for field = 1, fields do
  local merge, target = merge_of(field), key_of(panes, field)
  local keys = {}
  for pane = 0, panes - 1 do keys[#keys + 1] = key_of(pane, field) end
  redis.call('DEL', target)
  if merge == 'union' then
    local there = {}
    for _, key in ipairs(keys) do if redis.call('EXISTS', key) == 1 then there[#there + 1] = key end end
    if #there > 0 then redis.call('PFMERGE', target, unpack(there)) end
  else
    local values = {}
    for _, value in ipairs(redis.call('MGET', unpack(keys))) do if value then values[#values + 1] = value end end
    if #values > 0 then
      if merge == 'sum_int' then
        for _, value in ipairs(values) do
          local sum = redis.pcall('INCRBY', target, value)
          if type(sum) == 'table' and sum.err then
            redis.call('DEL', target)
            return redis.error_reply('"""
    + OVERFLOW
    + """ ' .. target)
          end
        end
      elseif merge == 'sum_float' then redis.call('SET', target, float_sum(values))
      elseif merge == 'min_int' then redis.call('SET', target, extreme(values, less))
      elseif merge == 'max_int' then
        redis.call('SET', target, extreme(values, function(a, b) return less(b, a) end))
      elseif merge == 'min_float' then redis.call('SET', target, extreme(values, float_less))
      else redis.call('SET', target, extreme(values, function(a, b) return float_less(b, a) end)) end
    end
  end
  redis.call('PEXPIRE', target, ttl)
end
return {stored, outdated}
"""
)
"""Sets panes of one key that share a coarse pane, unless they have a higher revision; makes the coarse pane anew."""
