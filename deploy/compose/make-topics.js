// Makes Pub/Sub topics in an emulator, each with a subscription of the same name, so that what arrives is kept.
// node make-topics.js HOST:PORT PROJECT TOPIC…; what is there already stays as it is.

const [host, project, ...topics] = process.argv.slice(2);
if (host === undefined || project === undefined || topics.length === 0) {
  throw new Error('usage: node make-topics.js HOST:PORT PROJECT TOPIC…');
}

/** @param {string} path @param {object} body */
async function put(path, body) {
  const response = await fetch(`http://${host}/v1/projects/${project}/${path}`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!response.ok && response.status !== 409) throw new Error(`${path}: ${response.status}`);
}

/** The emulator is a Java program, and takes its seconds to listen. */
async function listening() {
  const deadline = Date.now() + 60_000;
  for (;;) {
    try {
      return void (await fetch(`http://${host}/`));
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await new Promise((resolve) => {
        setTimeout(resolve, 250);
      });
    }
  }
}

await listening();
for (const topic of topics) {
  await put(`topics/${topic}`, {});
  await put(`subscriptions/${topic}`, {
    topic: `projects/${project}/topics/${topic}`,
    enableMessageOrdering: true,
  });
  process.stdout.write(`${topic}\n`);
}
