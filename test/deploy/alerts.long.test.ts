import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { startEndpoint } from '../sinks/http-support.ts';
import { CommandProcess } from '../support/command-process.ts';
import { freePort } from '../support/free-port.ts';
import { temporaryFolder } from '../support/folders.ts';
import { ROOT } from '../support/millrace.ts';
import { fillDisk, lacksMount, mountTmpfs } from '../support/mounts.ts';
import { Place } from '../support/place.ts';
import { firstLack, lacksProgram, skipped } from '../support/requirements.ts';
import type { Serving } from '../support/serving.ts';
import { until } from '../support/until.ts';

interface Rule {
  readonly alert: string;
  expr: string;
  for?: string;
}

interface Alert {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: { readonly summary: string };
  readonly state: 'pending' | 'firing';
}

/** The rules of deploy/ with waits and ranges of seconds. */
function shortened(): { groups: { rules: Rule[] }[] } {
  const text = readFileSync(join(ROOT, 'deploy/helm/millrace/alerts.yml'), 'utf8');
  const rules = parse(text) as { groups: { rules: Rule[] }[] };
  for (const rule of rules.groups.flatMap(({ rules: all }) => all)) {
    rule.expr = rule.expr.replaceAll(/\[\d+[mh]\]/g, '[10s]');
    if (rule.for !== undefined) rule.for = '1s';
  }
  return rules;
}

/** Debian's Prometheus, which asks one receiver every half second; stopped when the test ends. */
class Prometheus {
  readonly #url: string;
  readonly process: CommandProcess;

  private constructor(url: string, process: CommandProcess) {
    this.#url = url;
    this.process = process;
  }

  static async watching({ adminUrl }: Serving): Promise<Prometheus> {
    const folder = await temporaryFolder();
    const address = `127.0.0.1:${await freePort()}`;
    writeFileSync(join(folder, 'alerts.yml'), stringify(shortened()));
    const config = {
      global: { scrape_interval: '500ms', scrape_timeout: '500ms', evaluation_interval: '500ms' },
      rule_files: ['alerts.yml'],
      scrape_configs: [{ job_name: 'millrace', static_configs: [{ targets: [new URL(adminUrl).host] }] }],
    };
    writeFileSync(join(folder, 'prometheus.yml'), stringify(config));
    const args = [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=${address}`,
    ];
    const prometheus = new Prometheus(
      `http://${address}/api/v1/`,
      new CommandProcess(args, { program: ['prometheus'] }),
    );
    await until('a scrape', () =>
      prometheus.#ask<unknown[]>('query?query=up==1', 'result').then((all) => all.length > 0),
    );
    return prometheus;
  }

  /** Waits until it fires. @returns its labels, without those of every alert, and its summary */
  async fires(name: string): Promise<{ readonly labels: object; readonly summary: string }> {
    const alert = await until(`${name} to fire`, async () => {
      const alerts = await this.#alerts();
      return alerts.find(({ labels, state }) => labels['alertname'] === name && state === 'firing');
    });
    const { alertname: _, severity: __, job: ___, instance: ____, ...labels } = alert.labels;
    return { labels, summary: alert.annotations.summary.replaceAll(/127\.0\.0\.1:\d+/g, 'HOST') };
  }

  /** Waits until it has ended. @returns the states that it had */
  async ends(name: string): Promise<unknown[]> {
    await until(`${name} to end`, async () =>
      (await this.#alerts()).every(({ labels }) => labels['alertname'] !== name),
    );
    const query = `count by (alertstate) (max_over_time(ALERTS{alertname="${name}"}[1h]))`;
    const states = await this.#ask<{ metric: { alertstate: string } }[]>(
      `query?query=${encodeURIComponent(query)}`,
      'result',
    );
    return states.map(({ metric }) => metric.alertstate).sort();
  }

  #alerts(): Promise<Alert[]> {
    return this.#ask('alerts', 'alerts');
  }

  /** Nothing while it starts. */
  async #ask<T extends unknown[]>(path: string, member: string): Promise<T> {
    try {
      const { data } = (await (await fetch(this.#url + path)).json()) as { data: Record<string, T> };
      return data[member] ?? ([] as unknown as T);
    } catch {
      return [] as unknown as T;
    }
  }
}

/** A receiver with an archive and an HTTP sink, to whose target the test gives its answers. */
async function scene(changes: object = {}) {
  const endpoint = await startEndpoint();
  const far = {
    type: 'http',
    url: endpoint.url('/'),
    sign: 'none',
    privateNetworks: ['127.0.0.1'],
    timeout: '300ms',
  };
  const place = await Place.make((folder) => ({
    delivery: { downAfter: '1s', retryInitial: '50ms', retryMax: '200ms' },
    sinks: { archive: { type: 'files', path: `${folder}/archive` }, far },
    routes: [{ match: '*', to: ['archive', 'far'] }],
    ...changes,
  }));
  const receiver = await place.start();
  return { endpoint, place, receiver, prometheus: await Prometheus.watching(receiver) };
}

/** Posts again and again until `work` is done. @returns its result */
async function whilePosting<T>(post: (n: number) => Promise<unknown>, work: Promise<T>): Promise<T> {
  const over = new AbortController();
  const posting = (async () => {
    for (let n = 1000; !over.signal.aborted; n += 1) await post(n);
  })();
  const result = await work.finally(() => over.abort());
  await posting;
  return result;
}

/** Made-up events, of a type or of all in turn. */
function poster(receiver: Serving, type?: string): (n: number) => Promise<unknown> {
  return (n) => {
    const { id, body } = madeUpEvent(n, type);
    return receiver.post(body, { id });
  };
}

const PENDING_THEN_FIRING = ['firing', 'pending'];
const lack = lacksProgram('prometheus');

describe.skipIf(lack !== null)(`what Prometheus makes of a receiver${skipped(lack)}`, () => {
  test('a sink hangs: it is in trouble and down, and up again afterwards', async () => {
    const { endpoint, receiver, prometheus } = await scene();
    endpoint.reply = () => 'hang';
    await receiver.send(5);
    expect(await prometheus.fires('MillraceSinkTrouble')).toEqual({
      labels: { sink: 'far', code: 'target_paused' },
      summary: 'sink far of HOST is in trouble: target_paused',
    });
    expect(await prometheus.fires('MillraceSinkDown')).toMatchObject({ labels: { sink: 'far' } });
    endpoint.reply = () => 204;
    expect(await prometheus.ends('MillraceSinkTrouble')).toEqual(PENDING_THEN_FIRING);
    expect(await prometheus.ends('MillraceSinkDown')).toEqual(PENDING_THEN_FIRING);
    await receiver.drained();
  });

  const noMount = firstLack(lacksMount());
  test.skipIf(noMount !== null)(
    `the disk is full: the receiver refuses and is not ready, until there is room${skipped(noMount)}`,
    async () => {
      const disk = join(await temporaryFolder(), 'disk');
      onTestFinished(mountTmpfs(disk, '64m'));
      const { receiver, prometheus } = await scene({ journal: { path: join(disk, 'journal') } });
      const filler = join(disk, 'filler');
      fillDisk(filler);
      const refusing = await whilePosting(poster(receiver), prometheus.fires('MillraceRefusing'));
      expect(refusing.labels).toEqual({ outcome: 'journal_full' });
      await prometheus.fires('MillraceNotReady');
      rmSync(filler);
      expect(await prometheus.ends('MillraceNotReady')).toEqual(PENDING_THEN_FIRING);
      expect(await prometheus.ends('MillraceRefusing')).toEqual(PENDING_THEN_FIRING);
    },
  );

  test('an event type is new: once, and not when it comes again', async () => {
    const { receiver, prometheus } = await scene();
    const type = 'made_up.brand_new.created';
    await receiver.send(1, 0, type);
    expect(await prometheus.fires('MillraceNewType')).toEqual({
      labels: {},
      summary: 'HOST has received an event type for the first time',
    });
    expect(await whilePosting(poster(receiver, type), prometheus.ends('MillraceNewType'))).toEqual([
      'firing',
    ]);
  });

  test('a secret is wrong, a config cannot be used, an event is refused: each alert ends once it is mended', async () => {
    const { endpoint, place, receiver, prometheus } = await scene();
    const good = readFileSync(place.config);
    const secret = `whsec_${Buffer.from('another made-up secret of a test').toString('base64')}`;
    const forged = (): Promise<unknown> => receiver.post(undefined, { secret });
    await whilePosting(forged, prometheus.fires('MillraceSignaturesRefused'));
    writeFileSync(place.config, 'sinkz: {}');
    await receiver.reload();
    await prometheus.fires('MillraceConfigNotInForce');
    endpoint.reply = () => 422;
    await receiver.send(1);
    await prometheus.fires('MillraceDeadLetters');

    writeFileSync(place.config, good);
    await receiver.reload();
    endpoint.reply = () => 204;
    await place.ok('dead-letters', 'retry', '--all');
    for (const name of ['MillraceSignaturesRefused', 'MillraceConfigNotInForce', 'MillraceDeadLetters'])
      expect(await prometheus.ends(name), name).toEqual(PENDING_THEN_FIRING);
  });
});
