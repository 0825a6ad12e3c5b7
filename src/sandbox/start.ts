import { MillraceError, messageOf } from '../core/errors.ts';
import { bracketed, closeNow, createServer, startListening } from '../lib/listen.ts';
import { createSandboxApp } from './app.ts';
import { subjectOf } from './events.ts';
import { CORRECTED_AFTER_MS, eventName } from './health-data.ts';
import { madeUpEvent, type MadeUpEvent } from './made-up-events.ts';
import { DAY_MS, type Json } from './made-up-health.ts';
import { madeUpMeals } from './made-up-meals.ts';
import { resolveSandbox, type SandboxOptions } from './options.ts';
import type { User } from './users.ts';
import { createWorld, type World } from './world.ts';

/** A running stand-in of the service. */
export type Sandbox = Awaited<ReturnType<typeof startSandbox>>;

/** Starts a stand-in of the whole service. @throws MillraceError address_unavailable, usage */
export async function startSandbox(options: SandboxOptions = {}) {
  const resolved = resolveSandbox(options);
  const world = createWorld(resolved);
  const { team, endpoints, events, keys, sender, timers } = world;
  const firstKeys = {
    apiKey: keys.create('api', [team.id], 'first key').value,
    orgManagementKey: keys.create('org', [], 'made up').value,
    teamManagementKey: keys.create('team', [team.id], 'made up').value,
  };
  for (const webhook of resolved.webhooks) endpoints.create(team.id, webhook);
  const server = createServer(createSandboxApp(world));
  let port: number;
  try {
    port = await startListening(server, { host: resolved.host, port: resolved.port });
  } catch (error) {
    timers.stop();
    await sender.stop();
    const detail = `sandbox ${resolved.host}:${resolved.port}: ${messageOf(error)}`;
    throw new MillraceError('address_unavailable', detail, { cause: error });
  }
  if (resolved.dailyEveryMs > 0) sendDaily(world);
  return {
    /** Base URL, without a path. */
    url: `http://${bracketed(resolved.host)}:${port}`,
    teamId: team.id,
    ...firstKeys,
    /** Its state, for tests to read and change. */
    state: world,
    /** Sends the given events, or a number of made-up ones. */
    sendEvents: (wanted: number | readonly MadeUpEvent[]) => {
      const list =
        typeof wanted === 'number' ? Array.from({ length: wanted }, (_, n) => madeUpEvent(n)) : wanted;
      // To the webhooks and pipelines of this team, also when a body names another.
      return list.map((event) =>
        events.send({ id: subjectOf(event.body)?.id ?? '', teamId: team.id }, event),
      );
    },
    /** Sends what a day of a user has of a resource: `daily.data.<resource>.created`, and `.updated` once it is corrected. */
    sendData: (userId: string, resource: string, day: string) =>
      sendData(world, world.users.get(team.id, userId), resource, day),
    /** Connects a user to a provider, and sends `provider.connection.created`. */
    connect: (userId: string, provider: string) => connect(world, userId, provider),
    /** Ends timers, deliveries and connections. */
    stop: async () => {
      timers.stop();
      await Promise.all([closeNow(server), sender.stop()]);
    },
  };
}

function connect({ users, team, timers, events }: World, userId: string, provider: string): void {
  const user = users.get(team.id, userId);
  users.connect(user, provider, timers.stamp());
  const data = { user_id: user.id, provider: { slug: provider, name: provider }, source: { slug: provider } };
  events.emit(user, 'provider.connection.created', data);
}

function sendData({ health, events, timers }: World, user: User, resource: string, day: string): void {
  const startMs = Date.parse(day);
  const read = (): Json[] => [...health.eventsOf(resource, user, { startMs, endMs: startMs + DAY_MS - 1 })];
  const type = `daily.data.${eventName(resource)}`;
  const sent = read();
  for (const data of sent) events.emit(user, `${type}.created`, data);
  if (health.isCorrected) return;
  timers.after(CORRECTED_AFTER_MS, () => {
    if (user.erased) return;
    const before = new Set(sent.map((data) => JSON.stringify(data)));
    for (const data of read())
      if (!before.has(JSON.stringify(data))) events.emit(user, `${type}.updated`, data);
  });
}

/** Sends meals of one user after the other; `daily` is the name of the type. */
function sendDaily(world: World): void {
  const { timers, users, team, options } = world;
  let turn = 0;
  const next = (): void => {
    const all = users.list(team.id);
    const user = all[turn % Math.max(1, all.length)];
    if (user !== undefined) emitMeal(world, user, Math.floor(turn / all.length));
    turn += 1;
    timers.after(options.dailyEveryMs, next);
  };
  timers.after(options.dailyEveryMs, next);
}

function emitMeal({ options, events }: World, user: User, round: number): void {
  const day = options.sinceMs + (round % Math.max(1, options.days)) * DAY_MS;
  const range = { startMs: day, endMs: day + DAY_MS - 1 };
  // A connection that is gone sends nothing.
  const [meal] = user.connections.flatMap(({ provider }) => [
    ...madeUpMeals(options, user, { ...range, provider }),
  ]);
  if (meal !== undefined) events.emit(user, 'daily.data.meal.created', meal);
}
