import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { z } from 'zod';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, ROOT } from '../support/millrace.ts';
import { Place, printing } from '../support/place.ts';
import { lacksProgram, skipped } from '../support/requirements.ts';
import { SECRET } from '../support/signed-events.ts';

const DEPLOY = join(ROOT, 'deploy');
const textOf = (path: string): string => readFileSync(join(DEPLOY, path), 'utf8');
const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  bin: { millrace: string };
  version: string;
  engines: { node: string };
  scripts: Record<string, string>;
};

const SECRETS = { MILLRACE_SECRET: SECRET, MILLRACE_ADMIN_TOKEN: 'made-up-admin-token' };

/** Whether a config can be used. */
async function checked(config: string) {
  const { code, stderr } = await millrace(['check', '--config', config], { env: SECRETS });
  return { code, stderr };
}

/** What stands behind an instruction, each time it is there. */
function argumentsOf(lines: readonly string[], instruction: string): string[] {
  return lines
    .filter((line) => line.startsWith(`${instruction} `))
    .map((line) => line.slice(instruction.length + 1));
}

const COMPOSE_KEYS = new Set(
  'build image environment ports volumes depends_on read_only tmpfs cap_drop security_opt ulimits stop_grace_period restart command healthcheck entrypoint secrets'.split(
    ' ',
  ),
);

describe('Dockerfile', () => {
  /** Instructions with their continuation lines joined, comments left out, by stage. */
  const stages = textOf('Dockerfile')
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, ' ')
    .split(/^(?=FROM )/m)
    .slice(1)
    .map((stage) => stage.trim().split(/\n+/));
  const final = stages.at(-1) ?? [];

  test('copies only what is there, and what its ignore file lets through', () => {
    const allowed = new Set(
      textOf('Dockerfile.dockerignore')
        .split('\n')
        .filter((line) => line.startsWith('!'))
        .map((line) => line.slice(1)),
    );
    const sources = stages.flat().flatMap((line) => {
      const words = line.split(/\s+/);
      return words[0] === 'COPY' && !line.includes('--from=') ? words.slice(1, -1) : [];
    });
    expect(sources).toEqual(expect.arrayContaining(['package.json', 'package-lock.json', 'src']));
    expect(sources.filter((source) => !existsSync(join(ROOT, source)))).toEqual([]);
    expect(sources.filter((source) => !allowed.has(source))).toEqual([]);
  });

  test('runs what the package runs, built, as a user without rights, and without its sources', () => {
    expect(argumentsOf(stages[0] ?? [], 'RUN')).toContain('npm run build');
    expect(manifest.scripts).toHaveProperty('build');
    const copies = argumentsOf(final, 'COPY').filter((copy) => copy.startsWith('--from='));
    expect(copies).toEqual([
      '--from=dependencies /build/node_modules /opt/millrace/node_modules',
      '--from=build /build/dist /opt/millrace/dist',
    ]);
    const [links = ''] = argumentsOf(final, 'RUN');
    expect(links).toContain(`ln -s /opt/millrace/${manifest.bin.millrace} /usr/local/bin/millrace`);
    expect(argumentsOf(final, 'USER')).toEqual(['1000:1000']);
    expect(argumentsOf(final, 'ENTRYPOINT')).toEqual(['["millrace"]']);
    const [, image] = /^ARG NODE=node:(\d+)/m.exec(textOf('Dockerfile')) ?? [];
    expect(`>=${image}`).toBe(manifest.engines.node);
  });

  test('its health check tells a receiver that lives from one that does not', async () => {
    const [check = ''] = argumentsOf(final, 'HEALTHCHECK');
    const [program = '', ...args] = JSON.parse(check.slice(check.indexOf('['))) as string[];
    expect(program).toBe('millrace');
    const place = await Place.make();
    const receiver = await place.start();
    const env = { MILLRACE_CONFIG: place.config, MILLRACE_ADMIN_PORT: new URL(receiver.adminUrl).port };
    expect(await millrace(args, { env })).toMatchObject(printing(0, `${receiver.adminUrl} answers`));
    await receiver.kill('SIGTERM');
    expect(await millrace(args, { env })).toMatchObject(printing(1, 'does not answer'));
  });
});

describe('compose', () => {
  interface Service {
    readonly image?: string;
    readonly build?: { readonly context: string; readonly dockerfile: string };
    readonly volumes?: readonly string[];
    readonly secrets?: readonly string[];
    readonly ports?: readonly string[];
    readonly command?: readonly string[];
    readonly depends_on?: readonly string[] | Readonly<Record<string, unknown>>;
    readonly environment?: Readonly<Record<string, string>>;
    readonly read_only?: boolean;
  }
  const compose = parse(textOf('compose.yaml')) as {
    services: Record<string, Service>;
    volumes: Record<string, unknown>;
    secrets: Record<string, unknown>;
  };
  const services = Object.entries(compose.services);

  test('what it mounts, builds, depends on and shares is there', () => {
    for (const [name, { volumes = [], secrets = [], depends_on = [], build, image }] of services) {
      expect(image, name).toBeDefined();
      if (build !== undefined)
        expect(existsSync(join(DEPLOY, build.context, build.dockerfile)), name).toBe(true);
      for (const volume of volumes) {
        const [from = ''] = volume.split(':');
        const known = from.startsWith('.') ? existsSync(join(DEPLOY, from)) : from in compose.volumes;
        expect(known, `${name}: ${volume}`).toBe(true);
      }
      for (const secret of secrets) expect(compose.secrets, name).toHaveProperty(secret);
      const others = Array.isArray(depends_on) ? depends_on : Object.keys(depends_on);
      for (const other of others) expect(compose.services, name).toHaveProperty(other);
    }
  });

  test('no key is one that compose does not know', () => {
    const unknown = services.flatMap(([name, service]) =>
      Object.keys(service)
        .filter((key) => !COMPOSE_KEYS.has(key))
        .map((key) => `${name}.${key}`),
    );
    expect(unknown).toEqual([]);
  });

  test('nothing is published beyond this machine, and our containers write to their volume only', () => {
    for (const [name, { ports = [], image, read_only: readOnly }] of services) {
      for (const port of ports) expect(port, name).toMatch(/^127\.0\.0\.1:/);
      if (image === 'millrace') expect({ name, readOnly }).toEqual({ name, readOnly: true });
    }
  });

  test('its config can be used, and its brokers have the hubs and topics that the routes name', async () => {
    const { stdout, ...ended } = await millrace(
      ['check', '--config', join(DEPLOY, 'compose/millrace.yaml'), '--json'],
      { env: { ...compose.services['millrace']?.environment, ...SECRETS } },
    );
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    const { routes } = JSON.parse(stdout) as {
      routes: { to: { sink: string; destination: string | null }[] }[];
    };
    const named = (sink: string): string[] =>
      routes.flatMap(({ to }) =>
        to.flatMap((target) => (target.sink === sink ? [target.destination ?? 'events'] : [])),
      );
    const hubs = textOf('compose/event-hubs.json').matchAll(/"Name": "([a-z-]+)", "Part/g);
    expect(Array.from(hubs, ([, name]) => name)).toEqual(expect.arrayContaining(named('hubs')));
    expect(compose.services['topics']?.command).toEqual(expect.arrayContaining(named('topics')));
  });
});

describe('systemd', () => {
  const analyze = lacksProgram('systemd-analyze');

  test.skipIf(analyze !== null)(`the unit is one, and its sandbox is tight${skipped(analyze)}`, async () => {
    const unit = join(await temporaryFolder(), 'millrace.service');
    // The program is not installed where tests run.
    writeFileSync(unit, textOf('systemd/millrace.service').replace(/^ExecStart=\S+/m, 'ExecStart=/bin/true'));
    const verify = spawnSync('systemd-analyze', ['verify', '--man=no', unit], { encoding: 'utf8' });
    expect({ status: verify.status, stderr: verify.stderr }).toEqual({ status: 0, stderr: '' });
    const security = spawnSync('systemd-analyze', ['security', '--offline=true', '--threshold=20', unit], {
      encoding: 'utf8',
    });
    expect({ status: security.status }, security.stdout).toEqual({ status: 0 });
  });

  test('the user it runs as is the one that is made', () => {
    const [, user] = /^User=(.+)$/m.exec(textOf('systemd/millrace.service')) ?? [];
    expect(textOf('systemd/millrace.sysusers')).toContain(`u ${user} `);
  });
});

const actionlint = lacksProgram('actionlint');

test.skipIf(actionlint !== null)(`the workflows of GitHub are valid${skipped(actionlint)}`, () => {
  const { status, stdout, stderr } = spawnSync('actionlint', [], { cwd: ROOT, encoding: 'utf8' });
  expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: '', stderr: '' });
});

interface PodSpec {
  readonly template: {
    readonly spec: {
      readonly containers: readonly { image: string; args: string[]; volumeMounts: object[] }[];
    };
  };
}

test.each([
  ['drain-job.yaml', './data/journal', 'journal'],
  ['compact-cronjob.yaml', 's3://acme-health/archive', 'archive'],
])('%s runs as the chart runs a replica, and its command line is one', async (file, place, folder) => {
  const { spec } = parse(textOf(`kubernetes/${file}`)) as {
    spec: PodSpec | { jobTemplate: { spec: PodSpec } };
  };
  const { template } = 'jobTemplate' in spec ? spec.jobTemplate.spec : spec;
  const [container] = template.spec.containers;
  const pod = textOf('helm/millrace/templates/_helpers.tpl');
  for (const mount of container?.volumeMounts ?? []) {
    const { mountPath } = mount as { mountPath: string };
    expect(pod).toContain(`mountPath: ${mountPath}\n`);
  }
  expect(container?.image).toBe(`registry.example.com/millrace:${manifest.version}`);
  const made = await Place.make();
  // An empty journal, and an archive, made by a receiver.
  const receiver = await made.startProcess();
  if (folder === 'archive') await receiver.send(1);
  await receiver.drained();
  await receiver.stop();
  const named = new Map([
    [place, made.at(folder)],
    ['/etc/millrace/millrace.yaml', made.config],
  ]);
  const args = (container?.args ?? []).map((each) => named.get(each) ?? each);
  expect(args).toContain(made.at(folder));
  const { code, stderr } = await (args.includes(made.config) ? millrace(args) : made.run(...args));
  expect({ code }, stderr).toEqual({ code: 0 });
});

test('the command line of backfill-cronjob.yaml is one: it fetches a week', async () => {
  const { spec } = parse(textOf('kubernetes/backfill-cronjob.yaml')) as {
    spec: { jobTemplate: { spec: PodSpec } };
  };
  const [container] = spec.jobTemplate.spec.template.spec.containers;
  const bin = await temporaryFolder();
  const main = `exec ${process.execPath} ${join(ROOT, 'src/main.ts')} "$@" --user ${USER} --dry-run --json`;
  writeFileSync(join(bin, 'millrace'), `#!/bin/sh\n${main}\n`, { mode: 0o755 });
  const script = container?.args[0]?.replace('--all-users', '') ?? '';
  const env = { MILLRACE_SERVICE_BASE_URL: 'http://127.0.0.1:1', MILLRACE_SERVICE_API_KEY: 'x' };
  const path = { PATH: `${bin}:${process.env['PATH']}` };
  const { stdout, stderr } = spawnSync('sh', ['-c', script], { encoding: 'utf8', env: { ...env, ...path } });
  const plan = JSON.parse(stdout || '{}') as { since: string; until: string };
  expect(Date.parse(plan.until) - Date.parse(plan.since), stderr).toBe(7 * 86_400_000);
});

const USER = '00000000-0000-4000-8000-000000000001';

describe('helm', () => {
  const chart = join(DEPLOY, 'helm/millrace');
  const templates = readdirSync(join(chart, 'templates'));
  const helm = lacksProgram('helm');

  test('the chart is of this version, and its values are those that the schema and the templates know', () => {
    const { version, appVersion } = parse(readFileSync(join(chart, 'Chart.yaml'), 'utf8')) as Record<
      string,
      string
    >;
    expect({ version, appVersion }).toEqual({ version: manifest.version, appVersion: manifest.version });
    const values = parse(readFileSync(join(chart, 'values.yaml'), 'utf8')) as Record<string, unknown>;
    const schema = JSON.parse(readFileSync(join(chart, 'values.schema.json'), 'utf8')) as {
      properties: Record<string, unknown>;
    };
    expect(Object.keys(values).filter((key) => !(key in schema.properties))).toEqual([]);
    const used = templates
      .map((name) => readFileSync(join(chart, 'templates', name), 'utf8'))
      .join('\n')
      .matchAll(/\.Values\.([a-zA-Z.]+)/g);
    const lost = Array.from(used, ([, path = '']) => path).filter((path) => {
      let value: unknown = values;
      for (const key of path.split('.')) value = Object(value)[key];
      return value === undefined;
    });
    expect(lost).toEqual([]);
  });

  test('blocks that a template opens it also closes', () => {
    for (const name of templates) {
      const text = readFileSync(join(chart, 'templates', name), 'utf8');
      const opened = text.match(/\{\{-? *(?:if|with|range|define)\b/g)?.length ?? 0;
      expect({ name, closed: text.match(/\{\{-? *end\b/g)?.length ?? 0 }).toEqual({ name, closed: opened });
    }
  });

  const examples = join(DEPLOY, 'helm/examples');

  test.each(readdirSync(examples))('the values of %s are some, and its config can be used', async (name) => {
    const values = parse(readFileSync(join(examples, name), 'utf8')) as {
      image: { repository: string };
      config: { server: { trustedProxies: number } };
    };
    const schema = JSON.parse(
      readFileSync(join(chart, 'values.schema.json'), 'utf8'),
    ) as z.core.JSONSchema.Schema;
    expect(z.fromJSONSchema(schema).safeParse(values).error).toBeUndefined();
    expect(values.image.repository).toMatch(/\/millrace$/);
    expect(values.config.server.trustedProxies).toBeGreaterThan(0);
    const config = join(await temporaryFolder(), 'millrace.yaml');
    writeFileSync(config, stringify(values.config));
    expect(await checked(config)).toEqual({ code: 0, stderr: '' });
  });

  /** What everybody has to set, as JSON. */
  const IMAGE = 'image={"repository":"acme/millrace"}';
  const CONFIG = `config=${JSON.stringify({
    signing: { secrets: ['${MILLRACE_SECRET}'] },
    sinks: { archive: { type: 'files', path: './archive' } },
    routes: [{ match: '*', to: 'archive' }],
  })}`;

  function template(...args: readonly string[]): { status: number | null; stdout: string; stderr: string } {
    const always = ['template', 'made-up', chart, '--kube-version', '1.31.0'];
    return spawnSync('helm', [...always, ...args], { encoding: 'utf8' });
  }

  /** What the chart makes, by kind. */
  function render(...args: readonly string[]): Record<string, Rendered> {
    const { status, stdout, stderr } = template('--set-json', IMAGE, '--set-json', CONFIG, ...args);
    expect({ status }, stderr).toEqual({ status: 0 });
    const documents = parseAllDocuments(stdout).map((document) => document.toJS() as Rendered);
    return Object.fromEntries(documents.map((document) => [document.kind, document]));
  }

  test.skipIf(helm !== null)(`journaled keeps a volume, delivered scales${skipped(helm)}`, async () => {
    const journaled = render('--set', 'serviceMonitor.enabled=true');
    expect(Object.keys(journaled).sort()).toEqual([
      'ConfigMap',
      'PodDisruptionBudget',
      'Service',
      'ServiceAccount',
      'ServiceMonitor',
      'StatefulSet',
    ]);
    expect(journaled['StatefulSet']?.spec.volumeClaimTemplates).toHaveLength(1);
    const delivered = render('--set', 'acknowledge=delivered');
    expect(Object.keys(delivered)).toEqual(expect.arrayContaining(['Deployment', 'HorizontalPodAutoscaler']));
    expect(delivered).not.toHaveProperty('StatefulSet');
    for (const workload of [journaled['StatefulSet'], delivered['Deployment']]) {
      const pod = workload?.spec.template?.spec;
      expect(pod).toMatchObject({ enableServiceLinks: false, securityContext: { runAsNonRoot: true } });
      expect(pod?.containers[0]?.securityContext).toMatchObject({
        readOnlyRootFilesystem: true,
        allowPrivilegeEscalation: false,
      });
    }
    const config = join(await temporaryFolder(), 'millrace.yaml');
    writeFileSync(config, journaled['ConfigMap']?.data?.['millrace.yaml'] ?? '');
    expect(await checked(config)).toEqual({ code: 0, stderr: '' });
  });

  const PUBLIC = ['--set', 'ingress.enabled=true', '--set', 'ingress.host=hooks.example.com'];
  const ROUTED = ['--set', 'gateway.enabled=true', '--set', 'gateway.parentRefs[0].name=public'];
  const RECEIPTS = ['--set', 'config.receipts.path=./receipts'];

  test.skipIf(helm !== null)(`from outside nothing is reached but the config's paths${skipped(helm)}`, () => {
    const paths = (...args: readonly string[]): unknown[] => {
      const { Ingress, HTTPRoute, Service } = render(...PUBLIC, ...ROUTED, ...args);
      expect(Service?.kind).toBe('Service');
      const ingress = Ingress?.spec.rules?.flatMap(({ http }) => http?.paths.map(({ path }) => path));
      const routed = HTTPRoute?.spec.rules?.flatMap(({ matches }) => matches?.map(({ path }) => path.value));
      expect(routed).toEqual(ingress);
      for (const text of [JSON.stringify(Ingress), JSON.stringify(HTTPRoute)])
        expect(text).not.toMatch(/admin|9090/);
      return ingress ?? [];
    };
    expect(paths()).toEqual(['/webhooks']);
    expect(paths('--set', 'config.server.path=/hooks')).toEqual(['/hooks']);
    expect(paths(...RECEIPTS)).toEqual(['/webhooks', '/receipts/']);
    expect(Object.keys(render())).not.toEqual(expect.arrayContaining(['Ingress']));
  });

  /** Each port of the policy, with who reaches it. */
  const ports = (...args: readonly string[]): unknown =>
    render('--set', 'networkPolicy.enabled=true', ...args)['NetworkPolicy']?.spec.ingress?.map((rule) => [
      rule.ports[0]?.port,
      rule.from ?? 'anybody',
    ]);

  test.skipIf(helm !== null)(`who is not named does not reach the admin port${skipped(helm)}`, () => {
    expect(ports()).toEqual([[8080, 'anybody']]);
    expect(ports('--set', 'networkPolicy.adminFrom[0].ipBlock.cidr=10.0.0.0/16')).toEqual([
      [8080, 'anybody'],
      [9090, [{ ipBlock: { cidr: '10.0.0.0/16' } }]],
    ]);
  });

  test.skipIf(helm !== null).each([
    ['image.repository', []],
    ['config.sinks', []],
    ['ingress.host', ['--set', 'ingress.enabled=true']],
    ['gateway.parentRefs', ['--set', 'gateway.enabled=true']],
    ['config.server.path', [...PUBLIC, '--set', 'config.server.path=${WHERE}']],
    ['config.receipts', [...PUBLIC, ...RECEIPTS, '--set', 'replicas=2']],
    ['clasName', ['--set', 'ingress.clasName=nginx']],
    ['config.server.port', ['--set', 'config.server.port=${PORT}']],
    ['config.admin.enabled', ['--set', 'config.admin.enabled=false']],
    ['config.shutdown.deadline', ['--set', 'config.shutdown.deadline=1.5h']],
    ['terminationGracePeriodSeconds', ['--set', 'terminationGracePeriodSeconds=40']],
    ['digest', ['--set', 'image.digest=latest']],
  ])(`%s is named by what refuses it${skipped(helm)}`, (name, args) => {
    const set = [IMAGE, CONFIG].filter((one) => !name.startsWith(one.split('=')[0] ?? '') || args.length > 0);
    const { status, stderr } = template(...set.flatMap((one) => ['--set-json', one]), ...args);
    expect(status).toBe(1);
    expect(stderr).toContain(name);
  });

  test.skipIf(helm !== null)(`ports and the grace period are the config's${skipped(helm)}`, () => {
    const set = ['server.port=8081', 'admin.port=9191', 'shutdown.deadline=90s'].flatMap((one) => [
      '--set',
      `config.${one}`,
    ]);
    const { StatefulSet, NetworkPolicy, Service } = render('--set', 'networkPolicy.enabled=true', ...set);
    const pod = StatefulSet?.spec.template?.spec;
    expect(pod?.containers[0]?.ports?.map(({ containerPort }) => containerPort)).toEqual([8081, 9191]);
    expect(pod?.terminationGracePeriodSeconds).toBe(120);
    expect(NetworkPolicy?.spec.ingress?.[0]?.ports).toEqual([{ port: 8081 }]);
    expect(Service?.spec.ports?.map(({ port }) => port)).toEqual([9191]);
  });

  test.skipIf(helm !== null)(
    `an image can be named by its digest, and all by another name${skipped(helm)}`,
    () => {
      const digest = `sha256:${'0'.repeat(64)}`;
      const { StatefulSet, Service } = render(
        '--set',
        `image.digest=${digest}`,
        '--set',
        'fullnameOverride=hooks',
      );
      expect(StatefulSet?.spec.template?.spec.containers[0]?.image).toBe(`acme/millrace@${digest}`);
      expect([StatefulSet, Service].map((one) => one?.metadata.name)).toEqual(['hooks', 'hooks-admin']);
    },
  );

  test.skipIf(helm !== null)(`the alerts come along, with their run book${skipped(helm)}`, () => {
    const { PrometheusRule } = render(
      ...['prometheusRule.enabled=true', 'prometheusRule.labels.release=monitoring'].flatMap((one) => [
        '--set',
        one,
      ]),
      '--set',
      'prometheusRule.runbooks=https://git.example.com/millrace/',
    );
    expect(PrometheusRule?.metadata.labels).toMatchObject({ release: 'monitoring' });
    const own = parse(readFileSync(join(chart, 'alerts.yml'), 'utf8')) as { groups: unknown };
    const made = JSON.stringify(PrometheusRule?.spec.groups);
    expect(JSON.parse(made.replaceAll('https://git.example.com/millrace/', ''))).toEqual(own.groups);
    expect(made).toContain('https://git.example.com/millrace/docs/run-book.md#millracedown');
  });

  const validator = lacksProgram('kubernetes-validate');

  test.skipIf(helm !== null || validator !== null).each(['', ...readdirSync(examples)])(
    `Kubernetes knows all that the chart makes of %s${skipped(helm ?? validator)}`,
    async (name) => {
      const values =
        name === '' ? ['--set-json', IMAGE, '--set-json', CONFIG] : ['--values', join(examples, name)];
      const { status, stdout, stderr } = template(
        ...values,
        ...PUBLIC,
        ...ROUTED,
        ...['networkPolicy', 'serviceMonitor', 'prometheusRule'].flatMap((one) => [
          '--set',
          `${one}.enabled=true`,
        ]),
      );
      expect({ status }, stderr).toEqual({ status: 0 });
      const file = join(await temporaryFolder(), 'made.yaml');
      writeFileSync(file, stdout);
      const validated = spawnSync('kubernetes-validate', ['-k', '1.31', '--strict', file], {
        encoding: 'utf8',
      });
      expect({ status: validated.status }, validated.stdout + validated.stderr).toEqual({ status: 0 });
      expect(validated.stderr + validated.stdout).toContain('passed for resource statefulset/made-up');
    },
  );

  interface Rendered {
    readonly kind: string;
    readonly metadata: { readonly name: string; readonly labels?: object };
    readonly data?: Readonly<Record<string, string>>;
    readonly spec: {
      readonly groups?: unknown;
      readonly ports?: readonly { readonly port: number }[];
      readonly rules?: readonly {
        readonly http?: { readonly paths: readonly { readonly path: string }[] };
        readonly matches?: readonly { readonly path: { readonly value: string } }[];
      }[];
      readonly ingress?: readonly {
        readonly ports: readonly { readonly port: number }[];
        readonly from?: unknown;
      }[];
      readonly volumeClaimTemplates?: readonly unknown[];
      readonly template?: {
        readonly spec: {
          readonly terminationGracePeriodSeconds?: number;
          readonly containers: readonly {
            readonly image: string;
            readonly securityContext: object;
            readonly ports?: readonly { readonly containerPort: number }[];
          }[];
        };
      };
    };
  }
});
