<?php

declare(strict_types=1);

namespace Payrelay;

/** One request: its body is the same at every send. @internal */
final class Request
{
    /**
     * @param array<string, string|int|null> $query
     * @param array<string, string> $headers
     * @param bool $isOnce whether the service would carry it out twice
     */
    public function __construct(
        public readonly string $method,
        public readonly string $path,
        public readonly array $query = [],
        public readonly ?string $body = null,
        public readonly array $headers = [],
        public readonly bool $isOnce = false,
    ) {
    }

    /** @param array<string, mixed>|null $body members that are null are left out */
    public static function post(string $path, ?array $body, bool $isOnce = false): self
    {
        $text = $body === null ? null : ExactJson::encode(array_filter($body, static fn ($each) => $each !== null));
        return new self('POST', $path, body: $text, isOnce: $isOnce);
    }

    /** @param array<string, string> $headers */
    public function with(array $headers): self
    {
        return new self($this->method, $this->path, $this->query, $this->body, $headers + $this->headers, $this->isOnce);
    }

    public function target(): string
    {
        $query = http_build_query(array_filter($this->query, static fn ($each) => $each !== null));
        return $this->path . ($query === '' ? '' : "?$query");
    }
}

/** Sends requests by the one retry rule, and reads what came back. @internal */
final class Sender
{
    private const ANSWER_BYTES_MAX = 16 * 1024 * 1024;
    /** Longer than the service is ever silent on a stream: a comment comes every 15 s. */
    private const SILENCE_S = 45;

    private readonly string $address;
    private ?string $token = null;

    /**
     * @param string|\Closure(): string $credential
     * @param (\Closure(Waiting): void)|null $onWait
     * @param array<int, mixed> $curl
     */
    public function __construct(
        string $address,
        private readonly string|\Closure $credential,
        public readonly Limits $limits,
        private readonly ?\Closure $onWait,
        private readonly array $curl = [],
    ) {
        $this->address = rtrim($address, '/');
    }

    /** Sends what moves no money, and gives its success. @throws PayrelayError */
    public function ask(Request $request): Reply
    {
        $got = $this->send($request, new Budget($this->limits));
        return $got->status === 200 ? $got : throw $got->error();
    }

    /** Gives the entries of a list, and fetches the next page when it is needed. @return \Generator<int, array<string, mixed>> */
    public function pages(Request $first): \Generator
    {
        $request = $first;
        while ($request !== null) {
            $reply = $this->ask($request);
            foreach (is_array($reply->data) ? $reply->data : [] as $entry) {
                yield $entry;
            }
            $cursor = self::cursorOf($reply->headers['link'] ?? '');
            $request = $cursor === null ? null : new Request('GET', $first->path, ['cursor' => $cursor] + $first->query);
        }
    }

    /** Sends the very same request until there is an answer, or until the budget is used up; gives the last answer. */
    public function send(Request $request, Budget $budget): Reply
    {
        $isRenewed = false;
        while (true) {
            $budget->tries++;
            $got = $this->once($request, $budget);
            if ($got->status === 401 && !is_string($this->credential) && !$isRenewed) {
                $isRenewed = true;
                $this->token = null;
                continue;
            }
            $leavesDoubt = $got->isLost() || in_array($got->status, [202, 500], true) || $got->code() === 'in_progress';
            $budget->isInDoubt = $budget->isInDoubt || $leavesDoubt;
            if ($got->isFinal() || $got->status === 202 || $budget->tries >= $this->limits->tries) {
                return $got;
            }
            $isNotDone = in_array($got->status, [409, 429, 503], true) && ($got->error['retry'] ?? '') === 'after';
            if (($request->isOnce && !$isNotDone) || !$this->pause($got, $budget, $budget->tries)) {
                return $got;
            }
        }
    }

    /** Pauses before the next try, and says why; false at once where the pause would end too late. @throws Stopped */
    public function pause(Reply $got, Budget $budget, int $count, ?string $operationId = null): bool
    {
        $seconds = $budget->pauseS($count, $got->retryAfterS());
        if ($seconds === null) {
            return false;
        }
        if ($this->onWait !== null) {
            $id = $got->operationId() ?? $operationId;
            try {
                ($this->onWait)(new Waiting($got->code(), $seconds, $budget->tries, $got->requestId(), $id));
            } catch (Stopped $stopped) {
                $stopped->isOpen = $budget->isInDoubt;
                throw $stopped;
            }
        }
        usleep((int) ($seconds * 1_000_000));
        return true;
    }

    /** Sends a request one time, within the time that is left. */
    public function once(Request $request, Budget $budget): Reply
    {
        try {
            $this->token ??= is_string($this->credential) ? $this->credential : ($this->credential)();
        } catch (\Throwable $error) {
            // An error would say that nothing was done, and an earlier send may have been carried out.
            return $budget->isInDoubt ? Reply::lost(Reply::NO_CREDENTIAL, $error->getMessage()) : throw $error;
        }
        $headers = [];
        $body = '';
        $handle = $this->handle($request, min($this->limits->timeoutS, max($budget->leftS(), 0.001)), $headers);
        curl_setopt($handle, CURLOPT_WRITEFUNCTION, static function ($_, string $part) use (&$body): int {
            $body .= $part;
            return strlen($body) > self::ANSWER_BYTES_MAX ? 0 : strlen($part);
        });
        curl_exec($handle);
        $failure = curl_errno($handle);
        $status = (int) curl_getinfo($handle, CURLINFO_RESPONSE_CODE);
        if ($failure === CURLE_OPERATION_TIMEDOUT) {
            return Reply::lost(Reply::TIME_OUT, 'no answer came in time');
        }
        if ($failure === CURLE_WRITE_ERROR) {
            return Reply::lost(Reply::UNREADABLE, 'the answer is too long');
        }
        if ($failure !== CURLE_OK) {
            return Reply::lost(Reply::NO_ANSWER, 'no answer came: ' . curl_error($handle));
        }
        return Reply::read($status, $headers, $body);
    }

    /**
     * Gives the lines of a stream as they come, until it ends, breaks or is silent.
     *
     * Silent is one that doesn't begin within the time of a request, or on which nothing comes for longer than the service
     * ever lets a stream wait: its connection may be dead, and nobody would say so.
     *
     * @return \Generator<int, string>
     * @throws PayrelayError
     */
    public function stream(Request $request, float $timeoutS): \Generator
    {
        $headers = [];
        $buffer = '';
        $isHeard = false;
        $silentAtS = Budget::nowS() + $this->limits->timeoutS;
        $handle = $this->handle($request->with(['Accept' => 'text/event-stream']), $timeoutS, $headers);
        curl_setopt($handle, CURLOPT_WRITEFUNCTION, static function ($_, string $part) use (&$buffer, &$isHeard): int {
            $buffer .= $part;
            $isHeard = true;
            return strlen($buffer) > self::ANSWER_BYTES_MAX ? 0 : strlen($part);
        });
        $multi = curl_multi_init();
        curl_multi_add_handle($multi, $handle);
        try {
            do {
                curl_multi_exec($multi, $running);
                $status = (int) curl_getinfo($handle, CURLINFO_RESPONSE_CODE);
                while ($status === 200 && ($end = strpos($buffer, "\n")) !== false) {
                    $line = rtrim(substr($buffer, 0, $end), "\r");
                    $buffer = substr($buffer, $end + 1);
                    yield $line;
                }
                if ($isHeard) {
                    $isHeard = false;
                    $silentAtS = Budget::nowS() + self::SILENCE_S;
                }
                if ($running) {
                    curl_multi_select($multi, 0.5);
                }
            } while ($running && Budget::nowS() < $silentAtS);
            if ($status !== 200 && $status !== 0) {
                throw Reply::read($status, $headers, $buffer)->error();
            }
        } finally {
            curl_multi_remove_handle($multi, $handle);
            curl_multi_close($multi);
        }
    }

    /** @param array<string, string> $headers filled while the answer comes */
    private function handle(Request $request, float $timeoutS, array &$headers): \CurlHandle
    {
        $this->token ??= is_string($this->credential) ? $this->credential : ($this->credential)();
        $sent = $request->headers + ['Authorization' => "Bearer {$this->token}", 'Accept' => 'application/json'];
        if ($request->body !== null) {
            $sent['Content-Type'] = 'application/json';
        }
        $handle = curl_init($this->address . $request->target());
        curl_setopt_array($handle, $this->curl + [
            CURLOPT_CUSTOMREQUEST => $request->method,
            CURLOPT_HTTPHEADER => array_map(static fn ($name, $value) => "$name: $value", array_keys($sent), $sent),
            CURLOPT_FOLLOWLOCATION => false,
            CURLOPT_PROTOCOLS => CURLPROTO_HTTP | CURLPROTO_HTTPS,
            CURLOPT_HTTP_VERSION => CURL_HTTP_VERSION_1_1,
            CURLOPT_NOSIGNAL => true,
            // A connection that is used again may be closed by now, and curl would send a POST twice by itself.
            CURLOPT_FRESH_CONNECT => true,
            CURLOPT_FORBID_REUSE => true,
            CURLOPT_CONNECTTIMEOUT_MS => (int) min(10_000, ceil($timeoutS * 1000)),
            CURLOPT_TIMEOUT_MS => (int) ceil($timeoutS * 1000),
            CURLOPT_HEADERFUNCTION => static function ($_, string $line) use (&$headers): int {
                [$name, $value] = explode(':', $line, 2) + [1 => ''];
                $headers[strtolower(trim($name))] = trim($value);
                return strlen($line);
            },
        ]);
        if ($request->body !== null) {
            curl_setopt($handle, CURLOPT_POSTFIELDS, $request->body);
        } elseif ($request->method === 'POST') {
            curl_setopt($handle, CURLOPT_POSTFIELDS, '');
        }
        return $handle;
    }

    private static function cursorOf(string $link): ?string
    {
        if (preg_match('/<([^>]*)>\s*;[^,]*rel="next"/', $link, $found) !== 1) {
            return null;
        }
        parse_str((string) parse_url($found[1], PHP_URL_QUERY), $query);
        return is_string($query['cursor'] ?? null) ? $query['cursor'] : null;
    }
}
