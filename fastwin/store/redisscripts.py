"""What runs inside Redis: a block of panes of one key set as one atomic step, and the meta moved forward."""

__all__ = ["ADVANCE", "FOREIGN", "LAYOUT", "NEW_EPOCH", "PROCESS", "WRITE"]

FOREIGN = "FASTWIN_FOREIGN"

NEW_EPOCH = """
local epoch = math.max(tonumber(ARGV[1]), tonumber(redis.call('HGET', KEYS[1], 'epoch') or '0') + 1)
redis.call('HSET', KEYS[1], 'epoch', string.format('%.0f', epoch))
return string.format('%.0f', epoch)
"""
"""KEYS: meta. ARGV: the clock, ms. Returns the next epoch."""

LAYOUT = """
local meta = KEYS[1]
local from = tonumber(redis.call('HGET', meta, 'complete_from') or '')
local since = redis.call('HGET', meta, 'since')
if ARGV[2] ~= '' and since and not (from and from >= tonumber(since)) then
  redis.call('HSET', meta, 'complete_from', since)
end
redis.call('HSET', meta, 'layout', ARGV[1])
"""
"""KEYS: meta. ARGV: the layout; '1' if its retention is longer than that of before, or '': what the shorter one has
dropped does not come back."""

_PROCESS = """
local function process()
  local function told(section, name)
    local info = redis.pcall('INFO', section)  -- a table where it may not be asked
    return type(info) == 'string' and info:match(name .. ':(%w+)')
  end
  local run, line = told('server', 'run_id'), told('replication', 'master_replid')
  return run and line and run .. '-' .. line or run
end
"""
"""Which process this is, and since which failover it is the master: as it may be one anew that was one before.

It is another one, too, once a first replica comes, or the last one has been gone for an hour; then the batch is put
again."""

PROCESS = _PROCESS + "return process()"
"""KEYS: meta, wherever it is. Returns which process of the server's this is, or nil."""

ADVANCE = (
    _PROCESS
    + """
local meta = KEYS[1]
local watermark, first, retention, complete, stamp = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
local function number(name) return tonumber(redis.call('HGET', meta, name) or '') end
local here = ARGV[12] ~= '' and process()
if here and here ~= ARGV[12] then return 'other' end
if ARGV[11] ~= '' and redis.call('HGET', meta, 'identity') ~= ARGV[11] then return 'other' end
if ARGV[8] ~= '' then  -- an old run, which still goes on somewhere, does not set it back
  local put = tonumber(redis.call('HGET', KEYS[2], ARGV[8]) or '')
  if not (put and put >= tonumber(ARGV[9])) then redis.call('HSET', KEYS[2], ARGV[8], ARGV[9]) end
end
redis.call('HSETNX', meta, 'identity', ARGV[6])
local history = redis.call('HGET', meta, 'history') or ''
if history:sub(-#stamp) ~= stamp then  -- else the same step once more, whose answer was lost
  history = history == '' and stamp or history .. ' ' .. stamp
  local _, known = history:gsub('%S+', '')
  while known > tonumber(ARGV[7]) do history, known = history:gsub('^%S+ ', '', 1), known - 1 end
  redis.call('HSET', meta, 'history', history)
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
if ARGV[10] == '1' then redis.call('HSET', meta, 'lost', '1')
elseif ARGV[10] == '0' and complete ~= '' then redis.call('HSET', meta, 'lost', '') end
local since = redis.call('HGET', meta, 'since')
if first ~= '' and not (since and tonumber(since) <= tonumber(first)) then since = first end
local reached, dies = redis.call('HGET', meta, 'watermark'), tonumber(ARGV[14])
local dropped = false
if since and reached and retention then  -- by the watermark that is there now: another writer may have moved it
  local kept = tonumber(reached) - retention
  local floor = string.format('%.0f', kept - (kept - ARGV[17]) % ARGV[16])
  if tonumber(since) < tonumber(floor) then dropped = {since, floor}; since = floor end
end
if since then redis.call('HSET', meta, 'since', since) end
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
)
"""KEYS: meta; marks of queries. ARGV: watermark, start of the first pane, retention, end of a loss: ms or ''; stamp;
identity of a new store; how many stamps are kept; a query's name or '', and its batch; '1' for a loss whose end is not
known, '0' if the one that the store told of ends, or ''; the identity and the process that must be there, or ''; how
many entries of the clock are kept; until when what is written now is there, and how much later an entry is one of its
own: ms or ''; width and offset of blocks, ms or ''. Returns from where to where panes fall out, or nil; 'other' if
identity or process are not those."""

WRITE = (
    """
-- KEYS: all names; the last begins those of scratch values.
-- ARGV: time to live; how many fields must be as they were read: place of the hash among KEYS, field, value or '' each;
--       then steps, each a letter and the place of its name:
--       H set fields: how many, then field and value each       D delete fields: how many, then each
--       S set a sketch: the value                               X delete a sketch
--       U make a sketch anew: how many hashes, the place of each; '1' if it already has all but the new ones, or '';
--         how many new ones, then each
local ttl, at = ARGV[1], 3
for _ = 1, tonumber(ARGV[2]) do
  local name = KEYS[tonumber(ARGV[at])]
  local kind = redis.call('TYPE', name).ok
  if kind ~= 'none' and kind ~= 'hash' then return redis.error_reply('"""
    + FOREIGN
    + """ ' .. name) end
  if (redis.call('HGET', name, ARGV[at + 1]) or '') ~= ARGV[at + 2] then return 0 end
  at = at + 3
end

local function some(from, n)
  local found = {}
  for i = from, from + n - 1 do found[#found + 1] = ARGV[i] end
  return found
end

-- Nothing is written until all names are known to be ours.
local steps, wrong = {}, nil
local function is_sketch(text)  -- a header of 16 bytes, of which the fifth is 0 where all registers are there, or 1
  if #text < 16 or text:sub(1, 4) ~= 'HYLL' then return false end
  return text:byte(5) == 1 or (text:byte(5) == 0 and #text == 12304)
end
local function check(name, kind)
  local found = redis.call('TYPE', name).ok
  if found == 'none' then return end
  if found ~= kind or (kind == 'string' and not is_sketch(redis.call('GETRANGE', name, 0, 12304))) then
    wrong = wrong or name
  end
end
while at <= #ARGV do
  local step = {what = ARGV[at], name = KEYS[tonumber(ARGV[at + 1])]}
  at = at + 2
  if step.what == 'H' or step.what == 'D' then
    local n = tonumber(ARGV[at]) * (step.what == 'H' and 2 or 1)
    step.values = some(at + 1, n)
    at = at + 1 + n
    check(step.name, 'hash')
  elseif step.what == 'S' then
    step.values = {ARGV[at]}
    at = at + 1
    check(step.name, 'string')
  elseif step.what == 'X' then
    check(step.name, 'string')
  else
    local n = tonumber(ARGV[at])
    step.hashes = {}
    for i = 1, n do step.hashes[i] = KEYS[tonumber(ARGV[at + i])] end
    at = at + n + 1
    step.kept = ARGV[at] == '1' and redis.call('EXISTS', step.name) == 1
    n = tonumber(ARGV[at + 1])
    step.values = some(at + 2, n)
    at = at + 2 + n
    check(step.name, 'string')
    for _, name in ipairs(step.kept and {} or step.hashes) do
      check(name, 'hash')
      if not wrong then
        for _, sketch in ipairs(redis.call('HVALS', name)) do
          if not is_sketch(sketch) then wrong = name end
        end
      end
    end
  end
  steps[#steps + 1] = step
end
if wrong then return redis.error_reply('"""
    + FOREIGN
    + """ ' .. wrong) end

local function union(step)
  local sketches = step.values
  if not step.kept then  -- the new ones are in the hashes by now
    sketches = {}
    redis.call('DEL', step.name)
    for _, name in ipairs(step.hashes) do
      for _, sketch in ipairs(redis.call('HVALS', name)) do sketches[#sketches + 1] = sketch end
    end
  end
  if #sketches == 1 and not step.kept then redis.call('SET', step.name, sketches[1])
  elseif #sketches > 0 then
    local scratch = {}
    for i, sketch in ipairs(sketches) do
      scratch[i] = KEYS[#KEYS] .. i
      redis.call('SET', scratch[i], sketch)
    end
    local merged = redis.pcall('PFMERGE', step.name, unpack(scratch))
    redis.call('DEL', unpack(scratch))
    if type(merged) == 'table' and merged.err then return redis.error_reply('"""
    + FOREIGN
    + """ ' .. step.name) end
  end
end

for _, step in ipairs(steps) do
  if step.what == 'H' then redis.call('HSET', step.name, unpack(step.values))
  elseif step.what == 'D' then redis.call('HDEL', step.name, unpack(step.values))
  elseif step.what == 'S' then redis.call('SET', step.name, step.values[1])
  elseif step.what == 'X' then redis.call('DEL', step.name)
  else
    local failed = union(step)
    if failed then return failed end
  end
  redis.call('PEXPIRE', step.name, ttl)
end
return 1
"""
)
"""Sets panes of one key that are written as one, and the coarse pane above them. Returns 0, and does nothing, if fields
are not as they were read."""
