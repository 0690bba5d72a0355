// SPDX-License-Identifier: MIT
// Partita for C++17: objects that own the library's objects, and arrays with their sizes:
// std::vector, std::array, C arrays and, in C++20, std::span.
//
//   partita_problem echo = {};
//   echo.kernel[0] = 4;
//   echo.size[0] = PARTITA_UNBOUNDED;
//   partita::plan plan(echo);
//   partita::stream stream(partita::filter(plan, std::vector<float>{1, 0, 0, 0.5f}));
//   stream.process(outputs, inputs, n); // float *const *, any n; never allocates, locks or throws
//
// Constructors and calls of bounded problems throw partita::error. Its text is the library's log
// line, or that of the status if there is none; if options.log is set, that receives the lines.
// With several threads the text may be that of another thread's failure. Each member calls the C
// function of the same name, whose comment is its contract. Filters keep their plan alive, and
// streams keep their filters. For banks, spectra, saved transforms, wisdom, and functions that have
// no member here, use the C functions with get().
#ifndef PARTITA_HPP
#define PARTITA_HPP

#include <complex>
#include <iterator>
#include <memory>
#include <mutex>
#include <partita/partita.h>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace partita {

// What a failed call throws.
class error : public std::runtime_error {
  public:
    error(partita_status status, const std::string &text)
        : std::runtime_error(text.empty() ? partita_status_string(status) : text), status_(status)
    {
    }
    partita_status status() const noexcept
    {
        return status_;
    }

  private:
    partita_status status_;
};

// The type of the library for float, double and their complex types.
template <class T> constexpr partita_type type_of()
{
    using sample = std::remove_cv_t<T>;
    static_assert(std::is_same_v<sample, float> || std::is_same_v<sample, double> ||
                      std::is_same_v<sample, std::complex<float>> ||
                      std::is_same_v<sample, std::complex<double>>,
                  "samples are float, double or std::complex of them");
    if (std::is_same_v<sample, float>) return PARTITA_F32;
    if (std::is_same_v<sample, double>) return PARTITA_F64;
    return std::is_same_v<sample, std::complex<float>> ? PARTITA_CF32 : PARTITA_CF64;
}

namespace detail {

// A plan with what its calls need to know.
struct plan_state {
    partita_plan *plan = nullptr;
    partita_type signal = PARTITA_F32, taps = PARTITA_F32;
    size_t inputs = 0, outputs = 0; // samples of x and y; 0: a stream
    size_t out_channels = 1;
    std::mutex lock;
    std::string line; // the last one that was logged

    plan_state() = default;
    plan_state(const plan_state &) = delete;
    plan_state &operator=(const plan_state &) = delete;
    ~plan_state()
    {
        partita_plan_destroy(plan);
    }

    static void log(void *user, const char *text) noexcept
    {
        auto *state = static_cast<plan_state *>(user);
        try {
            std::lock_guard<std::mutex> guard(state->lock);
            state->line = text;
        } catch (...) { // no memory: the error has the text of its status
        }
    }
    void check(partita_status status)
    {
        if (status == PARTITA_OK) return;
        std::lock_guard<std::mutex> guard(lock);
        throw error(status, std::exchange(line, std::string()));
    }
    static void check_array(const char *name, partita_type type, size_t size, partita_type expected,
                            size_t count)
    {
        if (type != expected)
            throw error(PARTITA_ERR_ARG, std::string(name) + ": samples are " +
                                             partita_type_name(type) + ", the problem has " +
                                             partita_type_name(expected));
        if (size != count)
            throw error(PARTITA_ERR_ARG, std::string(name) + ": " + std::to_string(size) +
                                             " samples, the problem has " + std::to_string(count));
    }
};

inline size_t or_one(size_t n)
{
    return n ? n : 1;
}

} // namespace detail

class filter;

// partita_plan. Copies share it. A plan, filter or stream that was moved from may only be destroyed
// or assigned to.
class plan {
  public:
    // If options.log is empty, its lines are the texts of errors, and PARTITA_LOG has no effect.
    // options.wisdom, hooks and the log's user must outlive the plan and all filters and streams
    // made from it, since these keep the plan.
    explicit plan(const partita_problem &problem, partita_options options = partita_options())
        : state_(std::make_shared<detail::plan_state>())
    {
        if (!options.log.line) options.log = {detail::plan_state::log, state_.get()};
        state_->check(partita_plan_create(&problem, &options, &state_->plan));
        state_->signal = problem.signal ? problem.signal : PARTITA_F32;
        state_->taps = problem.taps ? problem.taps : state_->signal;
        state_->out_channels = detail::or_one(problem.out_channels);
        if (problem.size[0] != PARTITA_UNBOUNDED) count(problem);
    }
    partita_plan *get() const noexcept
    {
        return state_->plan;
    }
    std::string explain() const
    {
        std::string text(partita_plan_explain(get(), nullptr, 0), '\0');
        partita_plan_explain(get(), &text[0], text.size() + 1);
        return text;
    }
    const char *engine(partita_direction direction = PARTITA_FORWARD) const noexcept
    {
        return partita_plan_engine(get(), direction);
    }
    size_t workspace(partita_direction direction) const noexcept
    {
        return partita_plan_workspace(get(), direction);
    }
    size_t latency() const noexcept
    {
        return partita_plan_latency(get());
    }
    size_t taps_count() const noexcept
    {
        return partita_plan_taps_count(get());
    }
    size_t input_count() const noexcept
    {
        return state_->inputs;
    } // 0: a stream
    size_t output_count() const noexcept
    {
        return state_->outputs;
    } // 0: a stream
    partita_load load() const
    {
        partita_load load;
        state_->check(partita_plan_load(get(), &load));
        return load;
    }

    // Calls of bounded problems. The types and sizes of arrays are checked; f16 and bf16 have no
    // type here. call.taps must be NULL. With call.saved x is not read, but must have its size.
    // With call.queue arrays and objects must last until the queued work is done.
    template <class Y, class X>
    void forward(const filter &w, Y &&y, X &&x, partita_call call = partita_call()) const;
    template <class GX, class GY>
    void backward_data(const filter &w, GX &&gx, GY &&gy, partita_call call = partita_call()) const;
    template <class GW, class X, class GY>
    void backward_weight(GW &&gw, X &&x, GY &&gy, partita_call call = partita_call()) const
    {
        const void *from = data("x", x, state_->signal, state_->inputs);
        const void *slope = data("gy", gy, state_->signal, state_->outputs);
        void *to = data("gw", gw, state_->taps, taps_count());
        state_->check(partita_backward_weight(get(), to, from, slope, &call));
    }

  private:
    friend class filter;
    friend class stream;
    std::shared_ptr<detail::plan_state> state_;

    void count(const partita_problem &problem)
    {
        size_t size[PARTITA_MAX_RANK];
        state_->check(partita_problem_output_size(&problem, size));
        state_->inputs = detail::or_one(problem.batch) * detail::or_one(problem.in_channels);
        state_->outputs = detail::or_one(problem.batch) * detail::or_one(problem.out_channels);
        for (int i = 0; i < PARTITA_MAX_RANK; i++) {
            state_->inputs *= detail::or_one(problem.size[i]);
            state_->outputs *= detail::or_one(size[i]);
        }
    }
    template <class C> static auto *data(const char *name, C &&array, partita_type type, size_t n)
    {
        using sample = std::remove_pointer_t<decltype(std::data(array))>;
        detail::plan_state::check_array(name, type_of<sample>(), std::size(array), type, n);
        return std::data(array);
    }
};

// partita_filter. Copies share it.
class filter {
  public:
    template <class T, class = decltype(std::data(std::declval<T &>()))>
    filter(const partita::plan &plan, T &&taps) : plan_(plan)
    {
        const void *dense = plan::data("taps", taps, plan.state_->taps, plan.taps_count());
        partita_filter *made = nullptr;
        plan.state_->check(partita_filter_create(plan.get(), dense, &made));
        keep(made);
    }
    filter(const partita::plan &plan, const partita_taps &taps) : plan_(plan)
    {
        partita_filter *made = nullptr;
        plan.state_->check(partita_filter_create_from(plan.get(), &taps, &made));
        keep(made);
    }
    partita_filter *get() const noexcept
    {
        return filter_.get();
    }
    // Other taps in the same memory, for all copies of the filter: partita_filter_update. Without
    // a bias the filter keeps the one that it has.
    template <class T> void update(T &&taps, partita_call call = partita_call())
    {
        repack(taps, nullptr, call);
    }
    template <class T, class B, class = decltype(std::data(std::declval<B &>()))>
    void update(T &&taps, B &&bias, partita_call call = partita_call())
    {
        const auto &state = *plan_.state_;
        repack(taps, plan::data("bias", bias, state.signal, state.out_channels), call);
    }
    const partita::plan &plan() const noexcept
    {
        return plan_;
    }

  private:
    partita::plan plan_;
    std::shared_ptr<partita_filter> filter_;

    template <class T> void repack(T &&taps, const void *bias, const partita_call &call)
    {
        const void *dense = plan::data("taps", taps, plan_.state_->taps, plan_.taps_count());
        plan_.state_->check(partita_filter_update(get(), dense, bias, &call));
    }
    // The plan lives until the last copy of the filter is gone, whatever is assigned to plan_.
    void keep(partita_filter *made)
    {
        filter_.reset(made,
                      [state = plan_.state_](partita_filter *old) { partita_filter_destroy(old); });
    }
};

template <class Y, class X>
void plan::forward(const filter &w, Y &&y, X &&x, partita_call call) const
{
    const void *from = data("x", x, state_->signal, state_->inputs);
    void *to = data("y", y, state_->signal, state_->outputs);
    state_->check(partita_forward(get(), w.get(), to, from, &call));
}

template <class GX, class GY>
void plan::backward_data(const filter &w, GX &&gx, GY &&gy, partita_call call) const
{
    const void *from = data("gy", gy, state_->signal, state_->outputs);
    void *to = data("gx", gx, state_->signal, state_->inputs);
    state_->check(partita_backward_data(get(), w.get(), to, from, &call));
}

// partita_stream. It can be moved while no other thread uses it, not copied.
class stream {
  public:
    explicit stream(const filter &first) : filters_{first}
    {
        const partita::plan &plan = first.plan();
        partita_stream *opened = nullptr;
        plan.state_->check(partita_stream_open(plan.get(), first.get(), &opened));
        stream_.reset(opened);
    }
    stream(stream &&) noexcept = default;
    stream &operator=(stream &&other) noexcept
    {
        stream closing(std::move(other)); // gets the old stream, which closes before its filters
        filters_.swap(closing.filters_);
        stream_.swap(closing.stream_);
        return *this;
    }
    partita_stream *get() const noexcept
    {
        return stream_.get();
    }

    // The type of samples is not checked. x may be nullptr: silence.
    template <class T>
    void process(T *const *y, typename partita_inputs_of<T>::type x, size_t n_frames) noexcept
    {
        partita_stream_process(get(), y, x, n_frames);
    }
    // Keeps earlier filters at least while they are in use; a later swap releases them. One thread
    // at a time; process may run at the same time. Not real-time safe: allocates and releases
    // memory.
    void swap(const filter &next, size_t fade)
    {
        if (!partita_stream_swapping(get())) filters_.erase(filters_.begin(), filters_.end() - 1);
        filters_.push_back(next);
        const partita_status status = partita_stream_swap(get(), next.get(), fade);
        if (status == PARTITA_OK) return;
        filters_.pop_back();
        throw error(status, "");
    }
    bool swapping() const noexcept
    {
        return partita_stream_swapping(get());
    }
    size_t latency() const noexcept
    {
        return partita_stream_latency(get());
    }
    size_t tail() const noexcept
    {
        return partita_stream_tail(get());
    }
    void reset() noexcept
    {
        partita_stream_reset(get());
    }

  private:
    struct close {
        void operator()(partita_stream *stream) const noexcept
        {
            partita_stream_close(stream);
        }
    };
    std::vector<filter> filters_; // destroyed after the stream; the last one is the current one
    std::unique_ptr<partita_stream, close> stream_;
};

// partita_convolve and partita_correlate with default options. Throw partita::error if x, h or the
// slice is empty.
template <class T>
std::vector<T> convolve(const std::vector<T> &x, const std::vector<T> &h, partita_slice slice = {})
{
    std::vector<T> y(partita_slice_size(PARTITA_CONVOLVE, x.size(), h.size(), &slice));
    const partita_status status = partita_convolve(type_of<T>(), y.data(), x.data(), x.size(),
                                                   h.data(), h.size(), &slice, nullptr);
    if (status != PARTITA_OK) throw error(status, "");
    return y;
}

template <class T>
std::vector<T> correlate(const std::vector<T> &x, const std::vector<T> &h, partita_slice slice = {})
{
    std::vector<T> y(partita_slice_size(PARTITA_CORRELATE, x.size(), h.size(), &slice));
    const partita_status status = partita_correlate(type_of<T>(), y.data(), x.data(), x.size(),
                                                    h.data(), h.size(), &slice, nullptr);
    if (status != PARTITA_OK) throw error(status, "");
    return y;
}

} // namespace partita

#endif
